// The yardstick's side of ping and of idle event streams, as one writes it with Express: node express_app.mjs PORT
import express from 'express';

const app = express();
const key = 'Bearer bench';

app.disable('x-powered-by');
app.set('etag', false);

app.get('/sdk/ping', (req, res) => {
    const mode = req.headers.authorization === key ? 'development' : 'production';
    res.json({ success: true, message: 'pong', mode, timestamp: new Date().toISOString() });
});

app.get('/api/events', (req, res) => {
    res.set({ 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    res.flushHeaders();
    const beat = setInterval(() => res.write(':\n\n'), 15000);
    req.on('close', () => clearInterval(beat));
});

app.listen(Number(process.argv[2]), '127.0.0.1');
