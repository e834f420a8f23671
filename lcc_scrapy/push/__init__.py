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
    answers.py     bytes of the UNS → messages
    client.py      one conversation with a UNS
    submission.py  the lines that lcccp was given, checked and spooled
    quota.py       whether a set fits
    delivery.py    login, set, commit, retries
    report.py      what the user reads of it
    password.py    the password, and keeping it out of the process list
    lcccp.py       stage 3: url lines → UNS
"""
