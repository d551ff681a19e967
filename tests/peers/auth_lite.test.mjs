// /auth/v1 of the face beside the sign-in of the hosted service's own small server (@supabase/lite, over PostgreSQL): the official client plays the same
// script against both. What differs is listed with its reason; anything else that differs, or no longer differs, fails.
import { test } from 'node:test';
import { startHearth } from '../api/harness.mjs';
import { postgresPrograms, startPostgres } from '../api/postgres_server.mjs';
import { faceKeys } from '../api/realtime.mjs';
import { assertDiffer } from './answers.mjs';
import { play } from './auth_script.mjs';
import { startLite } from './lite_server.mjs';

const ownWords = 'the same error in our own words', weak = 'lite adds weak_password: null to the session, which the hosted service leaves out';

const ofLite = {
    'sign up': ['data', 'lite leaves confirmed_at out of the user that signs up, and tells it from then on'],
    'sign up without a password': ['message', ownWords],
    'sign in': ['data', weak],
    'sign in with the new password': ['data', weak],
    'refresh with a token that is none': ['code message', 'lite knows a refresh token by its form; the hosted service looks for it, as here'],
    'a session of a forged token': ['message', ownWords],
    'a token that is none': ['message', ownWords],
    'sign in by a token of another service': ['code message', 'not served here, and said so'],
};

test('a person who signs up, in and out, and is refused, is answered as by lite, but for what is listed', { skip: !postgresPrograms && 'no PostgreSQL is installed' }, async (t) => {
    const hearth = async () => {
        const h = await startHearth({ t });
        return { url: h.url, ...await faceKeys(h) };
    };
    const lite = async () => startLite(t, await startPostgres(t));
    const [ours, theirs] = await Promise.all([hearth().then(play), lite().then(play)]);
    assertDiffer(ours, theirs, ofLite);
});
