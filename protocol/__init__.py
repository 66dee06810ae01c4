"""The wire: bytes to messages and back. No I/O, no event loop, no clock.

Some readers here have a quick path and a full path, because nearly all input is sound, small and
ordinary, and Python spends most of its time on the checks that such input does not need:

    messages    quick_reader_source       reader_source
                A Produce of six partitions is read in two thirds of the time.
    records     `skim_records`            `read_records`
                Validation does not ask for keys, values and headers, so none are made.
    varints     one byte, in place        primitives.read_varint
                Most have one byte, and a call takes longer than reading it.
    zstd        one call for a frame      pieces of 512 bytes
                The block headers bound what the frame holds (zstd_frames).

A quick path may leave out only these:

- What the caller does not ask for, as `skim_records` does. The checks are the same.
- A check whose failure is certain to be found later, before anything is returned. The quick reader
  of messages does not hold a slice against the end, but looks at the position once, at the end.
- Input that is sound and rare. It is passed on to the full path, which reads it from the start.
- Saying what is wrong. Only the full path makes errors.

It may not leave out a check that nothing repeats, accept what the full path refuses, or allocate or
loop on the promise of a length. Tests read the same bytes by both paths, sound, cut and damaged
(test_quick_reader, test_record, test_zstd_frames, and the fuzzing).
"""

if __name__ != "odradek.protocol":
    raise ImportError("import odradek.protocol, not protocol")
