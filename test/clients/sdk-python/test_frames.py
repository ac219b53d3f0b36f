"""Bytes of the command channel, as a hostile sandbox may send them. Needs no server."""

import random
import unittest

from svc_sdk._channel import cbor
from svc_sdk._channel.channel_errors import ChannelError
from svc_sdk._channel.frame import MAX_FRAME_BYTES, FrameSplitter, decode_message, encode_message


class Frames(unittest.TestCase):
    def test_what_is_encoded_is_decoded(self) -> None:
        payload = {
            "text": "grüße",
            "bytes": b"\x00" * 300,
            "numbers": [0, 23, 24, 255, 256, 65536, 2**40, -1, -300],
            "nested": {"none": None, "true": True, "false": False},
        }
        frame = encode_message(7, "core.exec.request", payload)
        message = decode_message(frame)
        self.assertEqual((message.id, message.flags, message.type, message.payload), (7, 2, "core.exec.request", payload))

    def test_frames_are_found_in_any_pieces(self) -> None:
        frames = [encode_message(id, "core.fs.data", {"data": bytes(id)}) for id in range(1, 40)]
        stream = b"".join(frames)
        for size in (1, 7, 1000):
            splitter = FrameSplitter()
            found = [each for at in range(0, len(stream), size) for each in splitter.push(stream[at : at + size])]
            self.assertEqual(found, frames)

    def test_a_length_that_no_frame_has_is_refused(self) -> None:
        for length in (0, 4, MAX_FRAME_BYTES + 1, 0xFFFFFFFF):
            with self.assertRaises(ChannelError):
                list(FrameSplitter().push(length.to_bytes(4, "big") + bytes(8)))

    def test_mutated_frames_are_decoded_or_refused(self) -> None:
        chance = random.Random(7)
        whole = bytearray(encode_message(1, "core.exec.started", {"pid": 3, "list": [1, "two", b"3", {"k": 1}]}))
        for _ in range(20_000):
            frame = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                frame[chance.randrange(9, len(frame))] = chance.randrange(256)
            try:
                decode_message(bytes(frame))
            except ChannelError as error:
                self.assertEqual(error.kind, "protocol")

    def test_values_without_bound_are_refused(self) -> None:
        hostile = {
            "deep": b"\x81" * 100 + b"\x00",
            "endless": b"\x9f" * 100,
            "long list": b"\x9a\xff\xff\xff\xff",
            "long text": b"\x7b" + b"\xff" * 8,
            "key twice": b"\xa2\x61a\x00\x61a\x00",
            "rest": b"\x00\x00",
            "nothing": b"",
        }
        for name, data in hostile.items():
            with self.subTest(name), self.assertRaises(cbor.CborError):
                cbor.decode(data)
