-- The body of a short chat, for wrk.
wrk.method = "POST"
wrk.body = [[{"messages":[{"role":"user","content":"Say something."}]}]]
