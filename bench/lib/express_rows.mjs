// The yardstick's side of bench/echo.mjs, as one writes it with Express and Node's SQLite: node express_rows.mjs PORT FILE. Durable like Hearth's own.
import { DatabaseSync } from 'node:sqlite';
import express from 'express';

const app = express();
const db = new DatabaseSync(process.argv[3]);

db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE activities (id TEXT PRIMARY KEY, raw_data TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pending', updated_at TEXT)`);
const insert = db.prepare('INSERT INTO activities (id, raw_data) VALUES (?, ?) RETURNING id');
const update = db.prepare("UPDATE activities SET raw_data = ?, updated_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ? RETURNING *");

app.disable('x-powered-by');
app.set('etag', false);
app.use(express.json());

app.post('/activities', (req, res) => {
    res.json({ success: true, id: insert.get(crypto.randomUUID(), JSON.stringify(req.body.raw_data)).id });
});

app.patch('/activities/:id', (req, res) => {
    const row = update.get(JSON.stringify(req.body.raw_data), req.params.id);
    res.json({ success: true, data: { ...row, raw_data: JSON.parse(row.raw_data) } });
});

app.listen(Number(process.argv[2]), '127.0.0.1');
