"""Where connections arrive: endpoints, TLS, proxies, and whose connection it is."""
