"""How providers share a room that is bounded: the queue, the spool.

Dynamic thresholds, as in switches whose ports share one memory (A. K. Choudhury, E. L. Hahne, "Dynamic
Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2),
1998): nobody may have more in it than is left free. One provider alone gets half of the room, two get a
third each, n get 1/(n+1) each, and as much stays free for whoever comes next.
"""

NO_LIMIT = 1 << 62


def room_left(own: int, used: int, limit: int) -> int:
    """Return how much more a provider may put in.

    ``own`` is what it has in already, ``used`` what all have together, ``limit`` the size of the room
    (0 = no limit). Nothing is taken away from one who has more than that by now.
    """
    return max(0, (limit - used - own + 1) // 2) if limit else NO_LIMIT
