// A PostgreSQL as a project of the hosted service: its roles, the schema auth, the publication, and what `hearth backend setup` makes there. The tables of
// kind postgres are there too, so that a Hearth may work on it.
import { coldHearth } from '../api/harness.mjs';
import { startPostgres } from '../api/postgres_server.mjs';

const service = `CREATE ROLE anon NOLOGIN; CREATE ROLE authenticated NOLOGIN; CREATE ROLE service_role NOLOGIN BYPASSRLS;
    GRANT anon, authenticated, service_role TO owner; CREATE PUBLICATION supabase_realtime; ALTER PUBLICATION supabase_realtime OWNER TO owner;
    CREATE SCHEMA auth; GRANT USAGE ON SCHEMA auth TO anon, authenticated, service_role, owner;
    CREATE FUNCTION auth.uid() RETURNS uuid LANGUAGE sql STABLE AS $$ SELECT (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')::uuid $$;
    CREATE SCHEMA sales AUTHORIZATION owner; GRANT USAGE, CREATE ON SCHEMA public TO owner;`;

export async function hostedProject(t, settings = {}) {
    const pg = await startPostgres(t, settings), cold = coldHearth({ t });
    const sql = async (kind) => (await cold.cli('backend', 'sql', { env: { HEARTH_BACKEND_KIND: kind, HEARTH_BACKEND_URL: pg.url() } })).stdout;
    pg.psql(service, 'root');
    pg.psql(await sql('postgres'));
    pg.psql(await sql('hosted'));
    pg.psql('ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO authenticated, service_role; GRANT ALL ON ALL TABLES IN SCHEMA public TO service_role; GRANT USAGE ON SCHEMA sales TO authenticated, service_role');
    return pg;
}
