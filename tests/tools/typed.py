# Types lines into an interactive program on a terminal of its own, each after a prompt: typed.py PROMPT MARK PROGRAM ARG... The lines are a JSON array of
# standard input. A line follows the prompt that comes after MARK, which the command of the line before it prints; then the program is told to exit.
# Ends when the program ends, or 20 s after it typed something last; what the program wrote goes to standard output.
import json
import os
import pty
import signal
import sys

prompt, mark, *argv = sys.argv[1:]
lines = json.load(sys.stdin)
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
signal.alarm(20)
written, seen, wanted = b'', 0, [prompt]
texts = [*lines[:-1], f'{lines[-1]}\n exit']
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    written += piece
    while wanted and (at := written.find(wanted[0].encode(), seen)) >= 0:
        seen = at + len(wanted.pop(0))
    if not wanted and texts:
        os.write(terminal, f'{texts.pop(0)}\n'.encode())
        wanted = [mark, prompt]
        signal.alarm(20)
os.waitpid(pid, 0)
sys.stdout.buffer.write(written)
