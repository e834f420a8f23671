"""The settings: read from the Scrapy project and the environment, checked, and read again at SIGHUP.

It changes nothing.
"""
