// The agent of the chaos tests. What it does is written in its activity, by attempt; what happened goes to the ledger, where an
// answer of the service is written down after it was read and never before.
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { Ledger } from './chaos.mjs';

const { TASK_UUID: task, MACHINE_ID: machine, SERVER_URL: server, CHAOS_LEDGER, ACTIVITY_DATA } = process.env;
const attempt = Number(process.env.TASK_ATTEMPT);
const activity = JSON.parse(ACTIVITY_DATA);
const { n, plan } = activity.raw_data;
const token = `${n}/${attempt}/${randomUUID()}`;
const ledger = new Ledger(CHAOS_LEDGER);
const note = (what, more = {}) => ledger.add({ what, n, row: activity.id, task, attempt, machine, token, server, ...more });

function report(action, data) {
    return new Promise((done) => {
        const body = JSON.stringify({ action, machine_id: machine, attempt, data });
        const asked = http.request(`${server}/api/external-tasks/${task}/webhook`, { method: 'POST', headers: { 'content-type': 'application/json' } }, (reply) => {
            let text = '';
            reply.setEncoding('utf8').on('data', (piece) => { text += piece; });
            reply.on('error', () => done('no answer'));
            reply.on('end', () => {
                note(reply.statusCode === 200 ? `${action} acknowledged` : `${action} refused`, { status: reply.statusCode, text: text.slice(0, 300) });
                done(reply.statusCode);
            });
        });
        asked.on('error', () => done('no answer'));
        asked.end(body);
    });
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const success = { result: { token } };

const acts = {
    async report() { await report('completed', success); },
    async print() { process.stdout.write(JSON.stringify({ token })); },
    async twice() {
        await report('completed', success);
        await report('completed', success);
    },
    async contradict() {
        await report('completed', success);
        await report('failed', { error: { message: 'said after the success' } });
    },
    // What was said counts, not how the process left.
    async reportAndCrash() {
        await report('completed', success);
        process.exitCode = 3;
    },
    async linger() {
        await report('completed', success);
        await pause(400);
    },
    async slow() {
        await pause(600);
        await report('completed', success);
    },
    async fail() { await report('failed', { error: { message: `failed on purpose by ${machine}` } }); },
    async crash() { process.exitCode = 1 + attempt % 200; },
    async kill() { process.kill(process.pid, 'SIGKILL'); },
    async hang() { await pause(3_600_000); },
    // The test reports for it, when the attempt is long over.
    async late() {
        note('wants a late report');
        process.exitCode = 9;
    },
};

note('started', { act: plan[(attempt - 1) % plan.length] });
await acts[plan[(attempt - 1) % plan.length]]();
note('ended');
