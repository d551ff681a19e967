/* Every named maximum of the program. Each is tested at its edge. Bytes unless the name says otherwise. */
#pragma once

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

enum {
    /* connections and requests */
    LIMIT_CONNECTIONS = 8192,
    LIMIT_HEADER_BYTES = 32768,         /* request line and headers */
    LIMIT_HEADERS = 100,                /* header lines */
    LIMIT_TARGET_BYTES = 8192,          /* request target */
    LIMIT_RESERVED_CONNECTIONS = 64,    /* beyond LIMIT_CONNECTIONS, for the administrator's browser */
    LIMIT_UNIX_CONNECTIONS = 256,       /* of the data folder's socket, beside the others */
    LIMIT_RESERVED_FILES = 512,         /* descriptors that client connections leave to everything else */
    LIMIT_LINGER_BYTES = 1 << 20,       /* read and dropped after a last answer so that the client gets it */
    LIMIT_SMALL_BODY = 16 << 10,        /* a body up to this is never refused for a budget of bytes */
    LIMIT_LARGE_BODY = 256 << 10,       /* a body above this waits while requests need as much memory as they may */
    LIMIT_LARGE_WAITING = 256,
    LIMIT_LARGE_WAIT_MS = 10000,
    LIMIT_PACE_BYTES = 10 << 10,        /* of a body in HTTP_PACE_MS; less is too slow */
    LIMIT_BODY_DEFAULT = 1 << 20,
    LIMIT_BODY_ACTIVITY = 4 << 20,
    LIMIT_BODY_CHAT = 32 << 20,
    LIMIT_REPLY = 64 << 20,
    LIMIT_ROUTE_PARAMS = 4,
    LIMIT_STREAM_BUFFER = 256 << 10,    /* waiting bytes of one SSE stream */
    LIMIT_STREAM_PUSH = 32 << 20,       /* one push into a stream */
    LIMIT_EVENT_STREAMS = 4096,         /* open SSE streams */

    /* memory and logs */
    LIMIT_ARENA_BYTES = 512 << 20,      /* one request or job in all */
    LIMIT_LOG_OWN_LINE_BYTES = 4096,    /* one line of the service's own log, with its newline */
    LIMIT_LOG_WAITING_BYTES = 1 << 20,  /* lines that standard error has not taken yet */
    LIMIT_LOG_FLUSH_MS = 2000,          /* how long the service waits at its end for the lines to be taken */

    /* work */
    LIMIT_SHORT_WAITING = 4096,
    LIMIT_SHORT_DEADLINE_MS = 30000,    /* a request still waiting for a short worker then is answered OVERLOADED */
    LIMIT_LONG_DEADLINE_MS = 120000,    /* the same for the long pool */
    LIMIT_LONG_THREADS = 256,
    LIMIT_LONG_WAITING = 256,
    LIMIT_SHORT_RESERVED = 2,           /* threads beyond the others, for the administrator only */
    LIMIT_LONG_RESERVED = 8,
    LIMIT_WRITER_GROUP = 512,           /* closures in one commit */
    LIMIT_WRITER_WAITING = 65536,

    /* JSON */
    LIMIT_JSON_DEPTH = 64,
    LIMIT_JSON_VALUES = 16 << 20,       /* of one text, counted by its commas and brackets; each costs up to 24 bytes while it is read */
    LIMIT_SCHEMA_STEPS = 500000,        /* of one check against a JSON Schema: elements looked at, and stretches of 64 bytes */
    LIMIT_STRING_DEFAULT = 65536,       /* characters of a string field without its own limit */
    LIMIT_ITEMS_DEFAULT = 10000,        /* elements of an array field without its own limit */

    /* identity */
    LIMIT_KEYS = 1000,
    LIMIT_APPS = 500,
    LIMIT_PERMISSIONS_PER_APP = 200,
    LIMIT_APP_CONTACTS = 100,           /* programs that Hearth did not start and that used the id of one app */
    LIMIT_PENDING_CONSENTS = 1000,      /* of all apps; LIMIT_PERMISSIONS_PER_APP of one */
    LIMIT_CONSENT_WAITS_PER_APP = 16,   /* requests of one app that wait for the person at a time */
    LIMIT_SESSIONS = 1000,
    LIMIT_CONFIRMATIONS = 64,           /* sessions that wait for a confirmation, or have one, at a time */
    LIMIT_AUDIT_DETAIL = 64 << 10,      /* bytes of one entry's values; of more the beginning and a hash are kept */
    LIMIT_NAME_CHARS = 128,
    LIMIT_TEXT_CHARS = 2000,

    /* apps and children */
    LIMIT_CHILDREN = 256,
    LIMIT_CHILD_OPEN_FILES = 1024,      /* soft limit a child begins with */
    LIMIT_CHILD_TASKS = 2048,           /* processes and threads of one child in a sandbox */
    LIMIT_CHILD_TMP_BYTES = 512 << 20,  /* of its private /tmp, and of its /dev/shm: memory of the machine */
    LIMIT_SANDBOX_FOLDERS = 64,         /* of one list of a definition */
    LIMIT_SANDBOX_PATH = 4095,          /* bytes; PATH_MAX of the kernel less NUL */
    LIMIT_ARGS = 256,
    LIMIT_ARG_BYTES = 131071,           /* one argument or environment string; the kernel's MAX_ARG_STRLEN less NUL */
    LIMIT_PROMPT_BYTES = LIMIT_ARG_BYTES - 13,  /* what AGENT_PROMPT= leaves of one environment string */
    LIMIT_ENV_PAYLOAD = 96 << 10,       /* activity JSON above this goes through ACTIVITY_FILE */
    LIMIT_LOG_LINES = 2000,             /* kept lines of one child */
    LIMIT_LOG_LINE_BYTES = 4096,
    LIMIT_LOG_BYTES = 1 << 20,          /* kept bytes of one child */
    LIMIT_RESULT_BYTES = 4 << 20,       /* an agent's standard output taken as result */
    LIMIT_APP_TABLES = 32,
    LIMIT_APP_HANDLERS = 64,
    LIMIT_MAX_CONCURRENT = 64,          /* max_concurrent_tasks */

    /* tasks */
    LIMIT_ATTEMPT_MACHINES = 3,         /* then quarantined */
    LIMIT_LIST = 500,
    LIMIT_LIST_DEFAULT = 50,
    LIMIT_AGENTS = 500,
    LIMIT_WORKSPACES = 1000,
    LIMIT_THREADS = 100000,             /* of one workspace; a trigger makes one each time */
    LIMIT_TASK_EVENTS = 8192,           /* row events waiting for intake; beyond that the sweep finds the rows */
    LIMIT_TASK_JOBS = 65536,            /* starts and ends of runs waiting for a thread */
    LIMIT_TASK_THREADS = 16,
    LIMIT_RUN_LOG_BYTES = 64 << 10,     /* stored log of one run; older bytes leave first */

    /* backend */
    LIMIT_TABLE_NAME_PART = 63,         /* characters of a schema or table name, as in PostgreSQL */
    LIMIT_FILTER_BYTES = 2000,          /* a row filter */
    LIMIT_FILTER_PATH = 16,             /* members from a JSON column down */
    LIMIT_BROADCASTS_WAITING = 1024,
    LIMIT_CHANGE_LOG = 20000,           /* newest changes kept for the other services on the file */

    /* outgoing HTTP */
    LIMIT_SSE_EVENT = 4 << 20,          /* one event or line of an upstream's stream */
    LIMIT_UPSTREAM_HEADERS = 200,       /* header lines of an upstream's answer */
    LIMIT_UPSTREAM_HEAD = 64 << 10,     /* their bytes */
    LIMIT_UPSTREAM_IDLE = 256,          /* idle connections kept for streams */

    /* vectors */
    LIMIT_DIMENSIONS = 8192,
    LIMIT_VECTOR_METADATA = 64 << 10,   /* JSON text of one vector */
    LIMIT_VECTOR_ID_BYTES = 512,
    LIMIT_VECTOR_NAMESPACE_BYTES = 300,
    LIMIT_VECTOR_NAMESPACES = 10000,
    LIMIT_VECTORS_PER_CALL = 10000,     /* upserted, or removed by id */
    LIMIT_VECTOR_ROWS = 64 << 20,       /* of one namespace */
    LIMIT_VECTOR_LIST = 1000,
    LIMIT_VECTOR_CONDITIONS = 32,       /* of a metadata filter */
    LIMIT_VECTOR_CHOICES = 1000,        /* of one $in */
    LIMIT_VECTOR_COLUMN_BYTES = 64 << 20,       /* distinct values of a metadata key kept in memory */
    LIMIT_VECTOR_TEXT_BYTES = 4096,     /* of a hybrid search */
    LIMIT_TOP_K = 1000,
    LIMIT_BODY_VECTORS = 96 << 20,      /* 10,000 of 384 dimensions as JavaScript prints them; at most twice that lands in the arena */

    /* registered vector stores */
    LIMIT_STORE_PAGES = 4096,           /* of one operation that reads page by page, 1000 records each */
    LIMIT_STORE_REPLY = LIMIT_BODY_VECTORS,     /* of one request, its rows as text */
    LIMIT_STORE_SMALL_REPLY = 8 << 20,  /* of one that reads no records */
    LIMIT_STORE_LOOSE_BYTES = 1 << 20,  /* of one connection to PostgreSQL that are no whole row */
    LIMIT_STORE_CONNECT_MS = 10000,
    LIMIT_STORE_CHECK_MS = 20000,       /* registering */
    LIMIT_LOOKUPS = 64,                 /* names that are looked up at a time */

    /* embeddings */
    LIMIT_EMBED_TEXTS = 2048,           /* in one call */
    LIMIT_EMBED_TEXT = 256 << 10,       /* bytes of one */

    /* language models */
    LIMIT_LLM_PLAN_BYTES = 128 << 20,   /* requests to several accounts for one chat; an account beyond that is not planned for */
    LIMIT_MODELS = 2000,                /* of one provider's list */
    LIMIT_MODEL_BYTES = 256,            /* of a model's name or label in a provider's list or answer; longer ones are left out */
    LIMIT_TOOL_CALLS = 128,             /* of one answer */
    LIMIT_TOOL_ID_BYTES = 512,          /* of the id or name of one in an answer */
    LIMIT_TOKENS = 1 << 30,             /* of one answer, as its provider counts them; more is this many */
    LIMIT_STOP_BYTES = 256,             /* of one stop sequence */
    LIMIT_TOOLS = 512,                  /* of one ask */
    LIMIT_LLM_ANSWER = 16 << 20,        /* text, thoughts, their signatures and the arguments of all tool calls of one answer, each */
    LIMIT_ANSWER_PIECES = 4096,         /* stretches of text, thoughts and tool calls in one answer */
    LIMIT_MESSAGES = 2000,              /* of one ask */
    LIMIT_RING_BYTES = 512 << 10,       /* events of one stream kept for a client that comes back */
    LIMIT_KEPT_STREAMS = 256,           /* streams that wait for one */
    LIMIT_BLOCKS = 1000,                /* of one message */
    LIMIT_LLM_ACCOUNTS = 100,
    LIMIT_PROVIDER_ACCOUNTS = 50,       /* of them stored */
    LIMIT_PROVIDER_MODELS = 200,        /* of one account's list written by hand */
    LIMIT_PROVIDER_HEADERS = 20,        /* an account sends beside its key */
    LIMIT_PROVIDER_SECRET = 8192,       /* characters of a key, a header's value or an address */
    LIMIT_LLM_FALLBACKS = 4,            /* accounts asked after the first */
    LIMIT_MODEL_FILES = 500,            /* models in the models folder */
    LIMIT_LLAMA_SERVERS = 16,           /* llama-server processes at a time */

    /* usage */
    LIMIT_USAGE_ROWS = 10000,           /* of one day and run of the service with models of their own; the rest are counted as model "other" */
    LIMIT_USAGE_PROVIDERS = 128,        /* with metrics of their own; the rest are "other" */
    LIMIT_USAGE_NAME_BYTES = 256,       /* of a provider or model; cut beyond */

    /* settings */
    LIMIT_CONFIG_BYTES = 64 << 10,      /* the configuration file */
    /* a backup that is restored */
    LIMIT_RESTORE_RATIO = 100,          /* files may take so many times what the archive takes (a larger one is asked for with --max-mb) ... */
    LIMIT_RESTORE_FLOOR = 64 << 20,     /* ... and this much in any case */
    LIMIT_RESTORE_SMALL = 1 << 20,      /* the manifest, the settings file */
    LIMIT_RESTORE_KEY = 4096,

    LIMIT_SETTING_BYTES = 4096,         /* one value */
};

#define LIMIT_CHILD_FILE_BYTES (INT64_C(16) << 30)   /* one file that a child in a sandbox writes */
