"""The Kafka protocol: converts bytes to messages and back. No I/O, no event loop, no clock.

Some readers have a quick path and a full path. Nearly all input is valid, small and ordinary, and
Python spends most of its time on checks that such input does not need:

    messages    quick_reader_source       reader_source
                A Produce of six partitions is read in two thirds of the time.
    records     `skim_records`            `read_records`
                Validation does not need keys, values and headers, so none are made.
    varints     one byte, inline          primitives.read_varint
                Most have one byte, and a call takes longer than reading it.
    zstd        one call for a frame      pieces of 512 bytes
                The block headers bound the size of the frame's content (zstd_frames).

A quick path may leave out only:

- what the caller does not need, as `skim_records` does (its checks are the same);
- a check whose failure is certain to be found before anything is returned: the quick reader of
  messages does not check each slice against the end, but checks the position once, at the end;
- input that is valid and rare: it is passed to the full path, which reads it from the start;
- error messages: only the full path makes them.

It may not leave out a check that nothing repeats, accept what the full path refuses, or allocate or
loop on the promise of a length. Tests read the same bytes by both paths: valid, truncated and
damaged (test_quick_reader, test_record, test_zstd_frames, and the fuzzing).
"""

if __name__ != "odradek.protocol":
    raise ImportError("import odradek.protocol, not protocol")
