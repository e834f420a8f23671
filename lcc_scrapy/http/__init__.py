"""An HTTP/1.1 client (RFC 9112) over llhttp: rules of answers and requests, connections, a pool of them.

It opens no connections itself: whoever makes a ``Pool`` says how, ``lcc_scrapy.http.outgoing`` alone does.

    HttpError
    ├── BadHead      no HTTP, or a head beyond all bounds
    │   └── Unanswered   the connection ended before anything came
    ├── BadBody      a body that is cut, malformed or followed by something else
    └── Silence      nothing came for too long, or not all of it in time
"""
