#include "net/trust.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static X509_STORE *authorities; /* owned by the process; NULL: none could be read */
static const char *own_file;    /* SSL_CERT_FILE; NULL: not set */
static atomic_bool is_loaded;

static void load_once(void)
{
    const curl_version_info_data *built = curl_version_info(CURLVERSION_NOW);
    const char *own = getenv("SSL_CERT_FILE"), *file;
    X509_STORE *store = X509_STORE_new();

    own_file = own && *own ? own : NULL;
    file = own_file ? own_file : built->cainfo;
    if (store && file && X509_STORE_load_file(store, file) == 1) {
        if (built->capath)
            X509_STORE_load_path(store, built->capath);
        X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN); /* as libcurl: an intermediate may be trusted */
        authorities = store;
        return;
    }
    X509_STORE_free(store);
}

static void load_and_note(void)
{
    load_once();
    atomic_store(&is_loaded, true);
}

void trust_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_and_note);
}

bool trust_is_loaded(void)
{
    return atomic_load(&is_loaded);
}

static CURLcode give_authorities(CURL *easy, void *context, void *arg)
{
    SSL_CTX_set1_cert_store(context, authorities);
    return CURLE_OK;
}

void trust_use(CURL *easy)
{
    trust_load();
    if (authorities) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, NULL);
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, give_authorities);
    } else if (own_file) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, own_file);
    }
}
