// SIGHUP reads the settings file again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHearth } from './harness.mjs';

async function reload(h, text, said) {
    h.file('data/hearth.conf', text);
    h.signal('SIGHUP');
    await h.logged(said);
}

const sweep = async (h) => (await h.cli('settings', 'tasks.sweep_s')).stdout;

test('SIGHUP reads the settings file again, and one with an error changes nothing', async (t) => {
    const h = await startHearth({ t });
    await reload(h, 'tasks.sweep_s = 33\n', /the settings file was read again/);
    assert.match(await sweep(h), /33/);
    await reload(h, 'tasks.sweep_s = 44\nno.such = 1\n', /the settings stay as they are: .*hearth\.conf:2.*no\.such/);
    assert.match(await sweep(h), /33/);
    await reload(h, 'tasks.heartbeat_s = 900\ntasks.stale_after_s = 10\n', /the settings stay as they are: tasks\.stale_after_s must be above/);
    assert.match(await sweep(h), /33/);
});

test('the form of the log follows the settings file and `settings set`', async (t) => {
    const h = await startHearth({ t });
    await reload(h, 'log.format = json\n', /^\{.*the settings file was read again/);
    await h.cli('settings', 'set', 'log.format', 'text');
    await reload(h, '', /^[^{].*the settings file was read again/);
});
