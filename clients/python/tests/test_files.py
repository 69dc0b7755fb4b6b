"""atomic_write: whole or not there, and durable in the right order."""

import os
import unittest
from unittest import mock

import support  # noqa: F401
from support import JobTest

from zed import atomic_write


class AtomicWrite(JobTest):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.job_dir, "ckpt", "epoch-1.npz")

    def content(self):
        with open(self.path, "rb") as file:
            return file.read()

    def names(self):
        return sorted(os.listdir(os.path.dirname(self.path)))

    def test_writes(self):
        with atomic_write(self.path) as file:
            file.write(b"weights")
            self.assertFalse(os.path.exists(self.path))
        self.assertEqual((self.content(), self.names()), (b"weights", ["epoch-1.npz"]))

    def test_text(self):
        with atomic_write(self.path, "w") as file:
            file.write("Größe")
        self.assertEqual(self.content(), "Größe".encode())

    def test_other_modes_are_refused(self):
        with self.assertRaises(ValueError):
            with atomic_write(self.path, "ab"):
                pass

    def test_an_exception_leaves_the_old_content(self):
        with atomic_write(self.path) as file:
            file.write(b"old")
        with self.assertRaises(KeyboardInterrupt):
            with atomic_write(self.path) as file:
                file.write(b"half")
                raise KeyboardInterrupt
        self.assertEqual((self.content(), self.names()), (b"old", ["epoch-1.npz"]))

    def test_order_of_durability(self):
        calls = []
        real_fsync, real_replace = os.fsync, os.replace

        def fsync(descriptor):
            calls.append("fsync " + os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
            real_fsync(descriptor)

        def replace(source, target):
            calls.append("rename")
            real_replace(source, target)

        with mock.patch("os.fsync", fsync), mock.patch("os.replace", replace):
            with atomic_write(self.path) as file:
                file.write(b"weights")
        self.assertEqual(calls, ["fsync .epoch-1.npz.zed-tmp", "rename", "fsync ckpt"])

    def test_what_a_crash_left_is_reused(self):
        with open(os.path.join(self.job_dir, "ckpt", ".epoch-1.npz.zed-tmp"), "wb") as file:
            file.write(b"a long half-written rest")
        with atomic_write(self.path) as file:
            file.write(b"new")
        self.assertEqual((self.content(), self.names()), (b"new", ["epoch-1.npz"]))

    def test_two_writers_do_not_mix(self):
        with self.assertRaises(FileExistsError):
            with atomic_write(self.path) as first:
                first.write(b"first")
                with atomic_write(self.path) as second:
                    second.write(b"second")
        self.assertEqual(self.content(), b"second")

    def test_a_link_at_the_temporary_name_is_not_followed(self):
        victim = os.path.join(self.job_dir, "victim")
        with open(victim, "wb") as file:
            file.write(b"precious")
        os.symlink(victim, os.path.join(self.job_dir, "ckpt", ".epoch-1.npz.zed-tmp"))
        with atomic_write(self.path) as file:
            file.write(b"new")
        with open(victim, "rb") as file:
            self.assertEqual(file.read(), b"precious")

    def test_permissions_follow_the_umask(self):
        previous = os.umask(0o027)
        try:
            with atomic_write(self.path) as file:
                file.write(b"x")
        finally:
            os.umask(previous)
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o640)


if __name__ == "__main__":
    unittest.main()
