# Types a text into an interactive program on a terminal of its own, after it has printed a prompt: typed.py PROMPT TEXT PROGRAM ARG...
# Ends when the program ends, or after 20 s; what it wrote goes to standard output.
import os
import pty
import signal
import sys

prompt, text, *argv = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGKILL))
signal.alarm(20)
written, is_typed = b'', False
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    written += piece
    if not is_typed and prompt.encode() in written:
        os.write(terminal, text.encode())
        is_typed = True
os.waitpid(pid, 0)
sys.stdout.buffer.write(written)
