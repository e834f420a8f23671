"""Messages between content providers and the UNS, and their writing; standard library only."""
