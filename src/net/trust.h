/* The certificate authorities that https peers are checked against. Reading them takes some 100 ms of processor, which
 * the loop must not spend: they are read once, by the worker that plans the first request to an https address.
 *
 *     trust_load();                        on a worker
 *     trust_use(easy);                     any thread
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

/* Reads SSL_CERT_FILE, else the files libcurl was built with. The first caller does the work, others wait for it. */
void trust_load(void);
bool trust_is_loaded(void);
/* Gives the handle the authorities that were read; libcurl reads its own files when none could be read. */
void trust_use(CURL *easy);
