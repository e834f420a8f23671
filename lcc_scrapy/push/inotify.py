"""Changes below a folder, as Linux tells of them (inotify(7)), through ctypes."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import select
import struct

_CREATE, _DELETE, _MOVED = 0x100, 0x200, 0xC0
_CLOSE_WRITE, _ATTRIB, _SELF = 0x8, 0x4, 0xC00
_CHANGES = _CREATE | _DELETE | _MOVED | _CLOSE_WRITE | _ATTRIB | _SELF
_ONLY_FOLDERS, _IS_FOLDER, _OVERFLOW, _IGNORED = 0x01000000, 0x40000000, 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_BUFFER = 256 * 1024


class NoInotify(Exception):
    """This system has none, or no room for so many folders; the text says which."""


class Inotify:
    """Watches all folders below a root but hidden ones; raises `NoInotify`. Must be closed."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._folders: dict[int, bytes] = {}
        try:
            self._library = ctypes.CDLL(ctypes.util.find_library("c") or "libc.so.6", use_errno=True)
            self._descriptor = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, AttributeError):
            raise NoInotify("this system has no inotify") from None
        if self._descriptor < 0:
            raise NoInotify(os.strerror(ctypes.get_errno()))
        try:
            self._watch(root)
        except NoInotify:
            self.close()
            raise

    def close(self) -> None:
        """Watch no more."""
        os.close(self._descriptor)

    def changed(self, timeout: float) -> bool:
        """Wait for a change, at most ``timeout`` seconds, and take in all events; raises `NoInotify`."""
        ready, _, _ = select.select([self._descriptor], [], [], timeout)
        found = False
        while ready:
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                break
            found |= self._take(data)
        return found

    def _take(self, data: bytes) -> bool:
        at, found = 0, False
        while at < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, at)
            name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
            at += _EVENT.size + length
            if mask & _IGNORED:
                self._folders.pop(watch, None)
            elif mask & _OVERFLOW:
                self._watch(self._root)
                found = True
            elif not name.startswith(b"."):
                found = True
                if mask & _IS_FOLDER and mask & (_CREATE | _MOVED) and watch in self._folders:
                    self._watch(os.path.join(self._folders[watch], name))  # noqa: PTH118 - bytes
        return found

    def _watch(self, top: bytes) -> None:
        """Watch a folder and all below it; what is gone meanwhile is passed over."""
        self._add(top)
        for folder, folders, _ in os.walk(top):
            folders[:] = [name for name in folders if not name.startswith(b".")]
            for name in folders:
                path = os.path.join(folder, name)  # noqa: PTH118 - bytes
                if not os.path.islink(path):  # noqa: PTH114
                    self._add(path)

    def _add(self, folder: bytes) -> None:
        watch = self._library.inotify_add_watch(
            self._descriptor, folder, ctypes.c_uint32(_CHANGES | _ONLY_FOLDERS)
        )
        if watch >= 0:
            self._folders[watch] = folder
            return
        number = ctypes.get_errno()
        if number in {errno.ENOSPC, errno.ENOMEM}:
            raise NoInotify("too many folders for fs.inotify.max_user_watches")
