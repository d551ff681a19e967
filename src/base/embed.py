# Writes a C table of files: embed.py [--packed] OUT.c HEADER TABLE ROOT FILE...
# HEADER declares TABLE; a file's name in it is its path below ROOT. --packed: each is followed by its gzip sibling where that is shorter.
import gzip
import os
import sys

arguments = sys.argv[1:]
is_packed = arguments[0] == '--packed'
out, header, table, root, *paths = arguments[is_packed:]
files = []
for path in sorted(paths):
    with open(path, 'rb') as f:
        data = f.read()
    name = os.path.relpath(path, root)
    files.append((name, data))
    packed = gzip.compress(data, 9, mtime=0) if is_packed else data
    if len(packed) < len(data):
        files.append((name + '.gz', packed))
with open(out, 'w') as f:
    f.write(f'#include "{header}"\n\n')
    for i, (_, data) in enumerate(files):
        f.write(f'static const unsigned char file_{i}[] = {{ {", ".join(map(str, data))} }};\n')
    f.write(f'\nconst struct http_embedded_file {table}[] = {{\n')
    for i, (name, _) in enumerate(files):
        f.write(f'    {{ "{name}", {{ (const char *)file_{i}, sizeof(file_{i}) }} }},\n')
    f.write('    { .name = NULL },\n};\n')
