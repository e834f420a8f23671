"""The provider side: ``file2url | lcccpstate | lcccp`` (seed 000); standard library only.

::

    command.py     what the three commands have in common: exit statuses, messages, progress
    pipe.py        the lines between the stages
    filetypes.py   mimetypes by extension
    listing.py     which files there are
    file2url.py    stage 1: files → url lines
    state.py       the state file, its lock and its commit
    changes.py     what differs between a site and its state
    unconfirmed.py what the LCC may have taken without our learning of it
    lcccpstate.py  stage 2: a whole site → what changed
    answers.py     bytes of the UNS → messages (answer_room.py bounds them)
    client.py      one conversation with a UNS over its socket
    submission.py  the lines that lcccp was given, checked and spooled
    quota.py       whether a set fits
    delivery.py    login, set, commit, retries
    report.py      what the user reads of it
    password.py    the password, and keeping it out of the process list
    lcccp.py       stage 3: url lines → UNS

    lcc_push.py    the three stages as one command
    options.py     its command line and its configuration (configuration.py)
    one_push.py    one push, from a source to the LCC
    docroot.py, sitemaps.py, url_list.py    the sources
    watch.py       pushing what changes (inotify.py)
    init.py        registering a site (registration_api.py)

    link.py        a connection that is read while it is written
    http_push.py   a conversation over HTTP (web.py, http_reader.py)
    plan.py, ledger.py, logins.py           what is asked, and what is kept of it
"""
