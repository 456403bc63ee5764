"""A reader of pprof files that shares no code with sonde's own: what the tests compare through."""
import collections
import gzip

Frame = collections.namedtuple("Frame", "function file line start_line")
Location = collections.namedtuple("Location", "address frames file", defaults=(None,))
Sample = collections.namedtuple("Sample", "stack values labels")


class Profile:
    """types, period and period_type as names; samples with their stacks resolved, leaf first.

    With files, each location also has the file of its mapping.
    """

    def __init__(self, path, files=False):
        self.with_files = files
        with gzip.open(path) as f:
            self._decode(f.read())

    def _decode(self, data):
        strings, functions, locations, mappings = [], {}, {}, []
        samples, types = [], []
        period_type, self.period, self.time_ns, self.duration_ns = None, 0, 0, 0
        for field, wire, value in fields(data):
            if field == 1:
                types.append(dict((f, v) for f, _, v in fields(value)))
            elif field == 2:
                samples.append(value)
            elif field == 3:
                mappings.append(dict((f, v) for f, _, v in fields(value)))
            elif field == 4:
                self._location(value, locations)
            elif field == 5:
                function = dict((f, v) for f, _, v in fields(value))
                functions[function[1]] = function
            elif field == 6:
                strings.append(value.decode(errors="replace"))
            elif field == 9:
                self.time_ns = signed(value)
            elif field == 10:
                self.duration_ns = signed(value)
            elif field == 11:
                period_type = dict((f, v) for f, _, v in fields(value))
            elif field == 12:
                self.period = signed(value)
        name = lambda t: (strings[t.get(1, 0)], strings[t.get(2, 0)])
        self.types = [name(t) for t in types]
        self.period_type = name(period_type) if period_type else None
        self.mappings = [(m.get(2, 0), m.get(3, 0), m.get(4, 0), strings[m.get(5, 0)],
                          strings[m.get(6, 0)], bool(m.get(7, 0))) for m in mappings]
        resolved = {}
        files = {m[1]: strings[m.get(5, 0)] for m in mappings}
        for ident, (address, mapping, lines) in locations.items():
            frames = []
            for function_id, line in lines:
                f = functions[function_id]
                frames.append(Frame(strings[f.get(2, 0)], strings[f.get(4, 0)], line,
                                    signed(f.get(5, 0))))
            resolved[ident] = Location(address, tuple(frames),
                                       files.get(mapping, "") if self.with_files else None)
        self.samples = [self._sample(s, resolved, strings) for s in samples]

    @staticmethod
    def _location(data, locations):
        ident, address, mapping, lines = 0, 0, 0, []
        for field, _, value in fields(data):
            if field == 1:
                ident = value
            elif field == 2:
                mapping = value
            elif field == 3:
                address = value
            elif field == 4:
                line = dict((f, v) for f, _, v in fields(value))
                lines.append((line.get(1, 0), signed(line.get(2, 0))))
        locations[ident] = (address, mapping, lines)

    @staticmethod
    def _sample(data, locations, strings):
        stack, values, labels = [], [], []
        for field, wire, value in fields(data):
            if field == 1:
                stack += [locations[i] for i in packed(wire, value)]
            elif field == 2:
                values += [signed(v) for v in packed(wire, value)]
            elif field == 3:
                label = dict((f, v) for f, _, v in fields(value))
                labels.append((strings[label.get(1, 0)], strings[label.get(2, 0)],
                               signed(label.get(3, 0))))
        return Sample(tuple(stack), tuple(values), tuple(labels))

    def nonzero(self, skip=()):
        """The multiset of samples with any value; without those that have a frame of a package
        named in skip."""
        keep = collections.Counter()
        for sample in self.samples:
            if any(sample.values) and not has_frame_of(sample, skip):
                keep[sample] += 1
        return keep

    def functions(self):
        return {f.function for s in self.samples for loc in s.stack for f in loc.frames}


def has_frame_of(sample, packages):
    return any(frame.function.startswith(p) for loc in sample.stack for frame in loc.frames
               for p in packages)


def varint(data, pos):
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, pos


def fields(data):
    pos = 0
    while pos < len(data):
        key, pos = varint(data, pos)
        wire = key & 7
        if wire == 0:
            value, pos = varint(data, pos)
        elif wire == 2:
            size, pos = varint(data, pos)
            value = data[pos:pos + size]
            pos += size
        else:
            raise ValueError(f"wire type {wire}")
        yield key >> 3, wire, value


def packed(wire, value):
    if wire == 0:
        return [value]
    out, pos = [], 0
    while pos < len(value):
        item, pos = varint(value, pos)
        out.append(item)
    return out


def signed(value):
    return value - (1 << 64) if value >> 63 else value
