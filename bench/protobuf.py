"""Messages of protocol buffers, by the numbers of their fields: what benches know of OpenTelemetry's requests. Not plumb's decoder: that is what they check."""

def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at

def fields(data):
    """Number and content of each field: a number, or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 2, 5):
            length, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = data[at:at + length], at + length
        else:
            raise ValueError(f'a field of kind {kind}')
        yield tag >> 3, value

def all_of(data, number):
    """Contents of the fields with a number."""
    return [value for field, value in fields(data) if field == number]

def packed(data):
    """Numbers of a packed field."""
    at, values = 0, []
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values
