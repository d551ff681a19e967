"""What a hostile app or agent tries from inside; started by app.test.mjs. ATTACK is a JSON object; prints one, attack to outcome.
An outcome is the name of the error the attempt met, or what it got."""
import ctypes
import errno
import json
import os
import pty
import resource
import signal
import socket
import time

given = json.loads(os.environ['ATTACK'])
libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    'x86_64': dict(ptrace=101, process_vm_readv=310, unshare=272, mount=165, bpf=321, io_uring_setup=425, keyctl=250, perf_event_open=298,
                   userfaultfd=323, setns=308, open_by_handle_at=304, kexec_load=246, init_module=175, reboot=169, personality=135),
    'aarch64': dict(ptrace=117, process_vm_readv=270, unshare=97, mount=40, bpf=280, io_uring_setup=425, keyctl=219, perf_event_open=241,
                    userfaultfd=282, setns=268, open_by_handle_at=265, kexec_load=104, init_module=105, reboot=142, personality=92),
}[os.uname().machine]
CLONE_NEWUSER = 0x10000000
TIOCSTI = 0x5412
outcomes = {'descriptors': sorted(int(fd) for fd in os.listdir('/proc/self/fd'))[:-1]}


def attempt(name, act):
    try:
        got = act()
        outcomes[name] = 'done' if got is None else got
    except OSError as e:
        outcomes[name] = errno.errorcode.get(e.errno, str(e))


def call(name, *args):
    def act():
        if libc.syscall(numbers[name], *args) < 0:
            raise OSError(ctypes.get_errno(), name)
    return act


def read(path):
    with open(path, 'rb') as file:
        return len(file.read())


def write(path):
    with open(path, 'wb') as file:
        file.write(b'written')


def ioctl_on_a_terminal():
    import fcntl
    _, slave = pty.openpty()
    fcntl.ioctl(slave, TIOCSTI, b'x')


def connect_unix(address):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(address)


def administer():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(given['socket'])
        s.sendall(b'GET /api/apps HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
        return s.recv(64).decode('latin1').split('\r\n')[0] or 'closed'


def connect_tcp(port):
    with socket.socket() as s:
        s.settimeout(5)
        s.connect(('127.0.0.1', port))


def ask_service():
    with socket.socket() as s:
        s.settimeout(20)
        s.connect(('127.0.0.1', given['service_port']))
        s.sendall(b'GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:%d\r\nconnection: close\r\n\r\n' % given['service_port'])
        return s.recv(64).decode('latin1').split('\r\n')[0]


def processes():
    return len([name for name in os.listdir('/proc') if name.isdigit()])


def of_process(pid, name):
    return lambda: read(f'/proc/{pid}/{name}')


def fork_bomb():
    children = []
    try:
        while len(children) < given['fork_most']:
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            children.append(pid)
    except OSError as e:
        outcomes['fork ended'] = errno.errorcode.get(e.errno, str(e))
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return len(children)


for path in given['files']:
    attempt(f'read {path}', lambda: read(path))
for path in given['folders']:
    attempt(f'list {path}', lambda: len(os.listdir(path)))
for path in given['targets']:
    attempt(f'write {path}', lambda: write(path))
for pid in given['pids']:
    attempt(f'signal {pid}', lambda: os.kill(pid, 0))
    attempt(f'environ of {pid}', of_process(pid, 'environ'))
    attempt(f'memory of {pid}', of_process(pid, 'mem'))
    attempt(f'descriptors of {pid}', lambda: len(os.listdir(f'/proc/{pid}/fd')))
    attempt(f'root of {pid}', lambda: len(os.listdir(f'/proc/{pid}/root/')))
    attempt(f'ptrace {pid}', call('ptrace', 16, pid, 0, 0))
    attempt(f'process_vm_readv {pid}', call('process_vm_readv', pid, 0, 0, 0, 0, 0))
attempt('kill the first process', lambda: (os.kill(1, signal.SIGKILL), time.sleep(0.2))[1])
attempt('environ of the first process', of_process(1, 'environ'))
attempt('processes', processes)
attempt('unix socket', lambda: connect_unix(given['socket']))
attempt('administer', administer)
attempt('abstract socket', lambda: connect_unix('\0' + given['abstract']))
attempt('other port', lambda: connect_tcp(given['other_port']))
attempt('service', ask_service)
attempt('user namespace', call('unshare', CLONE_NEWUSER))
attempt('mount', call('mount', b'none', b'/tmp', b'tmpfs', 0, 0))
attempt('bpf', call('bpf', 0, 0, 0))
attempt('io_uring', call('io_uring_setup', 1, 0))
attempt('keyctl', call('keyctl', 0, -3, 1))
attempt('perf', call('perf_event_open', 0, 0, -1, -1, 0))
attempt('userfaultfd', call('userfaultfd', 0))
attempt('setns', call('setns', 0, 0))
attempt('file handle', call('open_by_handle_at', 0, 0, 0))
attempt('kexec', call('kexec_load', 0, 0, 0, 0))
attempt('module', call('init_module', 0, 0, 0))
attempt('reboot', call('reboot', 0, 0, 0, 0))
attempt('personality', call('personality', 0x0040000))
attempt('TIOCSTI', ioctl_on_a_terminal)
attempt('link to a file of the service', lambda: os.symlink(given['files'][0], os.path.join(given['own'], 'link')))
attempt('own folder', lambda: write(os.path.join(given['own'], 'mine')))
attempt('home', lambda: write(os.path.expanduser('~/mine')))
attempt('tmp', lambda: write('/tmp/mine'))
with open('/proc/self/status', encoding='ascii') as status:
    for line in status:
        name, _, value = line.partition(':')
        if name in ('CapEff', 'CapPrm', 'CapBnd', 'NoNewPrivs', 'Seccomp'):
            outcomes[name] = value.strip().lstrip('0') or '0'
outcomes['core'] = resource.getrlimit(resource.RLIMIT_CORE)
if given['fork_most']:
    attempt('fork', fork_bomb)
print(json.dumps(outcomes))
