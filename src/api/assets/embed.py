# Writes a C table of the files named, each with its gzip sibling where that is shorter: embed.py OUT.c FILE...
import gzip
import os
import sys

out, *paths = sys.argv[1:]
files = []
for path in sorted(paths):
    with open(path, 'rb') as f:
        data = f.read()
    packed = gzip.compress(data, 9, mtime=0)
    files.append((os.path.basename(path), data))
    if len(packed) < len(data):
        files.append((os.path.basename(path) + '.gz', packed))
with open(out, 'w') as f:
    f.write('#include "api/assets/assets.h"\n\n')
    for i, (_, data) in enumerate(files):
        f.write(f'static const unsigned char file_{i}[] = {{ {", ".join(map(str, data))} }};\n')
    f.write('\nconst struct http_embedded_file api_assets[] = {\n')
    for i, (name, _) in enumerate(files):
        f.write(f'    {{ "{name}", {{ (const char *)file_{i}, sizeof(file_{i}) }} }},\n')
    f.write('    { .name = NULL },\n};\n')
