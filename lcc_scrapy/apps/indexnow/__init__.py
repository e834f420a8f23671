"""IndexNow: sites tell what changed with one HTTP request, and prove with a file that they are the site.

See docs/indexnow.md.
"""
