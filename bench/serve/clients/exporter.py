"""Exports a profile as OpenTelemetry's own messages have it (opentelemetry-proto): over gRPC plain and with gzip, over HTTP in protocol buffers and JSON.
URL is the server's; TOKEN a token; CA the certificate of an https server."""
import os, ssl, time, urllib.request
import grpc
from google.protobuf import json_format
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as service, profiles_service_pb2_grpc as stub
from opentelemetry.proto.profiles.v1development import profiles_pb2 as profiles

URL, CA = os.environ['URL'], os.environ.get('CA')
AUTHORIZATION = [('authorization', 'Bearer ' + os.environ['TOKEN'])] if 'TOKEN' in os.environ else []

def request(name):
    message = service.ExportProfilesServiceRequest()
    dictionary = message.dictionary
    dictionary.string_table.extend(['', 'samples', 'count', 'cpu', 'nanoseconds', 'main', 'work_otlp'])
    for table in ('mapping_table', 'location_table', 'function_table', 'link_table', 'attribute_table', 'stack_table'):
        getattr(dictionary, table).add()
    for name_index in (5, 6):
        dictionary.function_table.add(name_strindex=name_index)
    for function in (1, 2):
        dictionary.location_table.add().lines.add(function_index=function)
    dictionary.stack_table.add(location_indices=[2, 1])
    resource = message.resource_profiles.add()
    for key, value in (('service.name', name), ('region', 'eu')):
        resource.resource.attributes.add(key=key).value.string_value = value
    profile = resource.scope_profiles.add().profiles.add(time_unix_nano=time.time_ns(), period=10_000_000)
    profile.sample_type.type_strindex, profile.sample_type.unit_strindex = 1, 2
    profile.period_type.type_strindex, profile.period_type.unit_strindex = 3, 4
    profile.samples.add(stack_index=1, timestamps_unix_nano=[time.time_ns()] * 3)
    return message

if CA:
    channel = grpc.secure_channel(URL.removeprefix('https://'), grpc.ssl_channel_credentials(open(CA, 'rb').read()))
else:
    channel = grpc.insecure_channel(URL.removeprefix('http://'))
export = stub.ProfilesServiceStub(channel).Export
export(request('otlp-grpc'), metadata=AUTHORIZATION)
export(request('otlp-grpc-gzip'), compression=grpc.Compression.Gzip, metadata=AUTHORIZATION)
for name, kind, body in (('otlp-http', 'application/x-protobuf', lambda one: one.SerializeToString()),
                         ('otlp-json', 'application/json', lambda one: json_format.MessageToJson(one).encode())):
    post = urllib.request.Request(URL + '/v1development/profiles', body(request(name)), {'Content-Type': kind, **dict(AUTHORIZATION)})
    assert urllib.request.urlopen(post, context=ssl.create_default_context(cafile=CA) if CA else None).status == 200
empty = request('otlp-empty')
del empty.resource_profiles[0].scope_profiles[0].profiles[0].samples[0].timestamps_unix_nano[:]
try:
    export(empty, metadata=AUTHORIZATION)
    raise SystemExit('a sample without values and timestamps was taken')
except grpc.RpcError as error:
    assert 'neither values nor timestamps' in error.details(), error.details()
