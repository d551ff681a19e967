/* Every named maximum of the program; a test covers the edge of each. Bytes unless the name says otherwise. */
#pragma once

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

enum {
    /* connections and requests */
    LIMIT_CONNECTIONS = 8192,
    LIMIT_HEADER_BYTES = 32768,      /* request line and headers */
    LIMIT_HEADERS = 100,             /* header lines */
    LIMIT_TARGET_BYTES = 8192,       /* request target */
    LIMIT_RESERVED_CONNECTIONS = 64, /* beyond LIMIT_CONNECTIONS, for the administrator's browser */
    LIMIT_UNIX_CONNECTIONS = 256,    /* on the data folder's socket, in addition to LIMIT_CONNECTIONS */
    LIMIT_RESERVED_FILES = 512,      /* descriptors that client connections leave for everything else */
    LIMIT_FREE_FILES = 4,            /* descriptors that an agent's start leaves for requests and their databases */
    LIMIT_START_FILES = 12,          /* descriptors that one start of a program takes at most, until it runs */
    LIMIT_LINGER_BYTES = 1 << 20, /* read and dropped after the last answer, so that the client receives that answer */
    LIMIT_SMALL_BODY = 16 << 10,  /* a body of at most this size is never refused for a budget of bytes */
    LIMIT_LARGE_BODY = 256 << 10, /* a larger body waits while requests hold all the memory they may */
    LIMIT_LARGE_WAITING = 256,
    LIMIT_LARGE_WAIT_MS = 10000,
    LIMIT_PACE_BYTES = 10 << 10, /* of a body in each HTTP_PACE_MS; a slower client is refused */
    LIMIT_BODY_DEFAULT = 1 << 20,
    LIMIT_BODY_ACTIVITY = 4 << 20,
    LIMIT_BODY_TOOL = 8 << 20, /* the arguments of one call of an MCP tool */
    LIMIT_BODY_CHAT = 32 << 20,
    LIMIT_REPLY = 64 << 20,
    LIMIT_ROUTE_PARAMS = 4,
    LIMIT_FILE_BYTES = 64 << 20,      /* of a static file */
    LIMIT_FILE_WHOLE_BYTES = 1 << 20, /* a larger file is sent in chunks */
    LIMIT_FILE_CHUNK_BYTES = 64 << 10,
    LIMIT_STREAM_BUFFER = 256 << 10, /* waiting bytes of one SSE stream */
    LIMIT_PIPELINED_A_TURN = 64,     /* heads of one connection read in one turn of the loop */
    LIMIT_CLOSED_A_TURN = 64,        /* connections that a stop closes in one turn of the loop */
    LIMIT_STREAM_PUSH = 32 << 20,    /* one push into a stream */
    LIMIT_EVENT_STREAMS = 4096,      /* open SSE streams */

    /* the face for apps of the hosted service */
    LIMIT_JWT_BYTES = 8192,
    LIMIT_JWT_SUBJECT = 128,
    LIMIT_JWT_ROLE = 32,
    LIMIT_JWT_SKEW_S = 30, /* clocks of issuer and reader may differ so much */

    LIMIT_FACE_USERS = 10000,
    LIMIT_FACE_EMAIL = 255,      /* characters */
    LIMIT_FACE_PASSWORD_MIN = 6, /* bytes; both as the hosted service has them */
    LIMIT_FACE_PASSWORD = 72,
    LIMIT_FACE_USER_DATA = 4096,       /* what a user says of itself, as JSON: every access token carries it */
    LIMIT_FACE_USER_SESSIONS = 100,    /* of one user; the one unused for longest ends when another begins */
    LIMIT_FACE_SESSION_IDLE_DAYS = 90, /* a session that was not refreshed for so long ends */
    LIMIT_FACE_ACCESS_S = 3600,        /* how long an access token is valid */
    LIMIT_FACE_REUSE_S = 10,           /* the last refresh token may be sent again, because its answer was lost */
    LIMIT_FACE_HASHES = 2,             /* passwords hashed at the same time, each in 19 MiB */
    LIMIT_FACE_ACCOUNT_TRIES = 10,     /* wrong passwords of one account at once; then one each ... */
    LIMIT_FACE_ACCOUNT_TRY_MS = 6000,
    LIMIT_FACE_ADDRESS_TRIES = 60, /* wrong passwords and sign-ups of one address at once; then one each ... */
    LIMIT_FACE_ADDRESS_TRY_MS = 2000,

    LIMIT_TOPIC_BYTES = 255,              /* of a channel's topic, "realtime:" included: one byte counts it */
    LIMIT_SOCKET_CHANNELS = 100,          /* channels joined over one socket */
    LIMIT_CHANNEL_CHANGES = 100,          /* subscriptions to changes of one channel */
    LIMIT_FILTER_VALUES = 100,            /* in `in.(...)` */
    LIMIT_BROADCAST_BYTES = 3 << 20,      /* one broadcast */
    LIMIT_BROADCAST_MESSAGES = 100,       /* in one request */
    LIMIT_REALTIME_BROADCASTS = 1024,     /* of requests, not yet delivered */
    LIMIT_PRESENCE_BYTES = 16 << 10,      /* what one member says of itself */
    LIMIT_PRESENCE_TOPIC_BYTES = 4 << 20, /* what all members of a channel say of themselves */
    LIMIT_PRESENCE_CALLS = 50,            /* of one channel in LIMIT_PRESENCE_WINDOW_S */
    LIMIT_PRESENCE_WINDOW_S = 30,
    LIMIT_PRESENCE_MACHINES = 64,           /* passed on between backend and clients, in each direction */
    LIMIT_REALTIME_SHAPES = 256,            /* tables whose columns are kept; with one more, all are read again */
    LIMIT_REALTIME_CHANGES = 10000,         /* changes not yet delivered; beyond it subscribers are told of a gap */
    LIMIT_REALTIME_CHANGE_BYTES = 64 << 20, /* the same in bytes */
    LIMIT_REALTIME_CHANGE = 4 << 20,        /* one change as JSON; of a larger one only small values are sent */
    LIMIT_REALTIME_CUT_VALUE = 64,          /* bytes of such a value as JSON; that of the original */
    LIMIT_REALTIME_PENDING = 64,            /* messages of one socket not yet handled; then it is not read */
    LIMIT_REALTIME_PENDING_BYTES = 1 << 20, /* the same in bytes */

    LIMIT_REST_BODY = 4 << 20,   /* of a request to /rest/v1 */
    LIMIT_REST_CONDITIONS = 256, /* of one request: tests, and groups of them */
    LIMIT_REST_DEPTH = 16,       /* groups of conditions within each other */
    LIMIT_REST_VALUES = 1000,    /* of in.(...) in one request */

    /* WebSockets */
    LIMIT_SOCKETS = 4096,
    LIMIT_SUBSCRIPTIONS = 65536,     /* channels and subscriptions of all sockets */
    LIMIT_SOCKET_MESSAGE = 5000000,  /* one message of a client, and one frame */
    LIMIT_SOCKET_FRAGMENTS = 1024,   /* frames of one message */
    LIMIT_SOCKET_WAITING = 8 << 20,  /* bytes that a client has not read yet; a slower client is closed */
    LIMIT_SOCKET_READ = 16 << 10,    /* read from one socket in one turn of the loop */
    LIMIT_SOCKET_CLOSE_REASON = 123, /* RFC 6455 section 5.5 */

    /* memory and logs */
    LIMIT_ARENA_BYTES = 512 << 20,     /* in total, for one request or job */
    LIMIT_LOG_OWN_LINE_BYTES = 4096,   /* one line of the service's own log, with its newline */
    LIMIT_LOG_WAITING_BYTES = 1 << 20, /* lines that standard error has not taken yet */
    LIMIT_LOG_FLUSH_MS = 2000,         /* how long the service waits at its end for these lines to be written */

    /* work */
    LIMIT_SHORT_WAITING = 4096,
    LIMIT_SHORT_DEADLINE_MS = 30000, /* a request that waits longer for a worker is answered OVERLOADED */
    LIMIT_LONG_DEADLINE_MS = 120000, /* the same for the long pool */
    LIMIT_DOCTOR_WAIT_MS = 2000,     /* GET /api/doctor waits so long for the default provider */
    LIMIT_LONG_THREADS = 256,
    LIMIT_LONG_WAITING = 256,
    LIMIT_SHORT_RESERVED = 2, /* threads beyond the others, for the administrator only */
    LIMIT_LONG_RESERVED = 8,
    LIMIT_SPAWNS_WAITING = 1024, /* programs that wait to be spawned; each has a thread that waits for it */
    LIMIT_WRITER_GROUP = 512,    /* closures in one commit */
    LIMIT_WRITER_WAITING = 65536,

    /* JSON */
    LIMIT_JSON_DEPTH = 64,
    LIMIT_JSON_VALUES =
        16 << 20, /* in one text, counted by its commas and brackets; each value costs up to 24 bytes during parsing */
    LIMIT_SCHEMA_STEPS = 500000,  /* of one check against a JSON Schema: elements visited, and blocks of 64 bytes */
    LIMIT_RPC_ID_BYTES = 512,     /* of the id of a JSON-RPC frame that is a text */
    LIMIT_RPC_METHOD_BYTES = 256, /* of the method of a JSON-RPC frame */
    LIMIT_SCHEMA_VALUES = 200000, /* elements of a schema that its reader visits, and blocks of 64 bytes */
    LIMIT_SCHEMAS = 20000,        /* schemas in one schema, itself included */
    LIMIT_SCHEMA_DEPTH = 256,     /* schemas that are applied within each other */
    LIMIT_SCHEMA_PATTERNS = 256,  /* regular expressions of one schema */
    LIMIT_PATTERN_BYTES = 4096,   /* of one regular expression */
    LIMIT_PATTERN_GROUPS = 100,   /* nested in one regular expression */
    LIMIT_PATTERN_HEAP = 8 << 20, /* that one search of a regular expression takes for its way back */
    LIMIT_STRING_DEFAULT = 65536, /* characters of a string field without its own limit */
    LIMIT_ITEMS_DEFAULT = 10000,  /* elements of an array field without its own limit */

    /* identity */
    LIMIT_KEYS = 1000,
    LIMIT_KEY_IMPORT_MIN = 16, /* characters of an imported key */
    LIMIT_KEY_IMPORT_MAX = 256,
    LIMIT_KEY_IMPORT_DISTINCT = 8, /* least number of distinct characters in it */
    LIMIT_APPS = 500,
    LIMIT_PERMISSIONS_PER_APP = 200,
    LIMIT_APP_CONTACTS = 100,         /* programs not started by Hearth that used the id of one app */
    LIMIT_PENDING_CONSENTS = 1000,    /* of all apps; LIMIT_PERMISSIONS_PER_APP of one */
    LIMIT_CONSENT_WAITS_PER_APP = 16, /* requests of one app that wait for the person at the same time */
    LIMIT_SESSIONS = 1000,
    LIMIT_FOREIGN_WORDS = 32,      /* remembered product names of other clients; those of known dialects do not count */
    LIMIT_CONFIRMATIONS = 64,      /* sessions that wait for a confirmation or hold one, at the same time */
    LIMIT_AUDIT_DETAIL = 64 << 10, /* bytes of one entry's values; of longer values the beginning and a hash are kept */
    LIMIT_NAME_CHARS = 128,
    LIMIT_PERMISSION_CHARS = 340,  /* of a permission that names a server and a tool; others have LIMIT_NAME_CHARS */
    LIMIT_APP_NEW_NAME_CHARS = 64, /* `hearth app new`: the agent's name is longer and must also fit LIMIT_NAME_CHARS */
    LIMIT_TEXT_CHARS = 2000,

    /* model agents */
    LIMIT_TURNS = 64,                   /* that run at once */
    LIMIT_TURN_STACK = 1 << 20,         /* of a thread that runs a turn or a tool */
    LIMIT_CALL_THREADS = 64,            /* that run calls beside their turns */
    LIMIT_TURNS_WAITING = 256,          /* beyond these; a turn that waits is told its place */
    LIMIT_AGENT_TOOLS = 256,            /* of one turn */
    LIMIT_PARALLEL_CALLS = 8,           /* calls of one answer that run at the same time */
    LIMIT_TRIGGER_DEPTH = 8,            /* tasks in a row, each triggered by the agent of the one before */
    LIMIT_TURN_TRIGGERS = 16,           /* tasks that one turn of an agent triggers */
    LIMIT_SAME_CALLS = 3,               /* calls of a tool with the same arguments in one turn: the last ends it */
    LIMIT_TOOL_RESULT_BYTES = 64 << 10, /* text of one result that is given to the model */
    LIMIT_TOOL_RESULT_IMAGES = 8,       /* of one result */
    LIMIT_TOOL_IMAGE_BYTES = 5 << 20,   /* of one image in a result, in base64 */
    LIMIT_PENDING_APPROVALS = 512,      /* questions that wait for a person */
    LIMIT_APP_APPROVALS = 64,           /* of one app; all apps together leave so many places for other questions */
    LIMIT_APPROVAL_BYTES = 1 << 20,     /* arguments of one question; shown in full */
    LIMIT_APPROVAL_RULES = 10000,       /* kept decisions about an agent and a tool */
    LIMIT_SESSION_APPROVALS = 4096,     /* decisions for sessions, in memory */

    /* built-in tools */
    LIMIT_TOOL_TEXT = 48 << 10,      /* of a file or a page in one result; the model asks for the rest */
    LIMIT_TOOL_IMAGE_FILE = 3 << 20, /* of an image file that is shown to the model: LIMIT_TOOL_IMAGE_BYTES in base64 */
    LIMIT_TOOL_EMBED_TEXTS = 32,     /* of one call of embed */
    LIMIT_TOOL_HITS = 50,            /* of one call of search_vectors */
    LIMIT_FOLDER_FILE = 8 << 20,     /* one file of a thread's folder, read or written by a tool */
    LIMIT_FOLDER_PATH = 1024,        /* bytes of the path that a model gives */
    LIMIT_FOLDER_DEPTH = 16,         /* parts of such a path */
    LIMIT_FOLDER_WALK = 64,          /* folders within each other that are counted and listed */
    LIMIT_FOLDER_ENTRIES = 10000,    /* files and folders of one thread */
    LIMIT_FOLDER_LIST = 1000,        /* entries of one list */
    LIMIT_PAGE_BYTES = 4 << 20,      /* of a page that fetch_url fetches */
    LIMIT_PAGE_MS = 30000,           /* to fetch it, redirects included */
    LIMIT_PAGE_TEXT = 8 << 20,       /* of its text */
    LIMIT_PAGE_DEPTH = 256,          /* elements of HTML within each other */
    LIMIT_PAGE_ATTRIBUTES = 512,     /* of one element, about */
    LIMIT_PAGE_LINK = 2000,          /* bytes of an address in the text of a page; a longer one is left out */
    LIMIT_COMMAND_BYTES = 32 << 10,  /* of a command line */
    LIMIT_COMMAND_OUTPUT = 256 << 10, /* of its standard output and of its errors, each */
    LIMIT_COMMAND_S = 600,            /* a command may be given at most so many seconds */
    LIMIT_QUESTION_CHARS = 2000,      /* of a question to a person, and of one choice */
    LIMIT_QUESTION_CHOICES = 20,

    /* apps and children */
    LIMIT_CHILDREN = 256,
    LIMIT_CHILD_OPEN_FILES = 1024,     /* soft limit of a child at its start */
    LIMIT_CHILD_TASKS = 2048,          /* processes and threads of one child in a sandbox */
    LIMIT_CHILD_TMP_BYTES = 512 << 20, /* each for its /tmp and its /dev/shm: memory of the machine */
    LIMIT_SANDBOX_FOLDERS = 64,        /* of one list of a definition */
    LIMIT_SANDBOX_PATH = 4095,         /* bytes; the kernel's PATH_MAX without NUL */
    LIMIT_ARGS = 256,
    LIMIT_ARG_BYTES = 131071, /* one argument or environment string; the kernel's MAX_ARG_STRLEN without NUL */
    LIMIT_PROMPT_BYTES = LIMIT_ARG_BYTES - 13, /* the rest of an environment string after AGENT_PROMPT= */
    LIMIT_ENV_PAYLOAD = 96 << 10,              /* longer activity JSON is passed in ACTIVITY_FILE */
    LIMIT_LOG_LINES = 2000,                    /* kept lines of one child */
    LIMIT_LOG_LINE_BYTES = 4096,
    LIMIT_LOG_BYTES = 1 << 20,    /* kept bytes of one child */
    LIMIT_RESULT_BYTES = 4 << 20, /* an agent's standard output used as its result */
    LIMIT_APP_LOG_ENTRIES = 500,  /* of one call of /sdk/logs */
    LIMIT_URL_CHARS = 2000,       /* home_url of an app */
    LIMIT_APP_TABLES = 32,
    LIMIT_APP_HANDLERS = 64,
    LIMIT_MAX_CONCURRENT = 64, /* max_concurrent_tasks */

    /* tasks */
    LIMIT_ATTEMPT_MACHINES = 3, /* different machines that may attempt a task before it is quarantined */
    LIMIT_LIST = 500,
    LIMIT_LIST_BYTES = 64 << 20,    /* of the rows of one list */
    LIMIT_CALENDAR_BYTES = 8 << 20, /* of the events of one list; JSON makes at most six bytes of one */
    LIMIT_EVENT_MEMBER = 64 << 10,  /* JSON text of the metadata, and of the reminders, that an app gives an event */
    LIMIT_LIST_DEFAULT = 50,
    LIMIT_AGENTS = 500,
    LIMIT_INSTRUCTIONS_CHARS = 65536,   /* of a model agent */
    LIMIT_INSTRUCTIONS_BYTES = 1 << 20, /* with the values of the variables in them */
    LIMIT_AGENT_PATTERNS = 128,         /* patterns of tools of one definition */
    LIMIT_AGENT_STEPS = 200,            /* answers of the model in one turn */
    LIMIT_TASK_THREADS_OF_APP = 1000,   /* full ones that are looked through for a place of an app's next task */
    LIMIT_AGENT_TOKENS = 1000000000,    /* largest max_tokens_per_turn */
    LIMIT_WORKSPACES = 1000,
    LIMIT_THREADS = 100000,            /* of one workspace; a trigger makes one each time */
    LIMIT_TASK_EVENT_BYTES = 64 << 20, /* of the rows in these events; beyond it a row is read when its turn comes */
    LIMIT_TASK_BATCH_BYTES = 32 << 20, /* of the new tasks that one transaction stores */
    LIMIT_TASK_EVENTS = 8192,          /* row events waiting for intake; the sweep finds the rows of dropped events */
    LIMIT_TASK_JOBS = 65536,           /* starts and ends of runs waiting for a thread */
    LIMIT_TASK_THREADS = 16,
    LIMIT_TASK_LOCKS_OF_APP = 2,    /* of them: claims that wait for one app to lock a row of its own table */
    LIMIT_CROWDED_RUNS = 3,         /* of a task: failures without processes left that are not counted as failures */
    LIMIT_CROWDED_TASKS = 512,      /* whose number of such runs is kept, the latest */
    LIMIT_RUN_LOG_BYTES = 64 << 10, /* stored log of one run; the oldest bytes are dropped first */

    /* backend */
    LIMIT_TABLE_NAME_PART = 63,                                 /* bytes of a schema or table name, as in PostgreSQL */
    LIMIT_TABLE_NAME = 2 * (2 * LIMIT_TABLE_NAME_PART + 2) + 1, /* both, in quotes, each byte a quote */
    LIMIT_FILTER_BYTES = 2000,                                  /* a row filter */
    LIMIT_FILTER_PATH = 16,                                     /* nested members below a JSON column */
    LIMIT_QUERY_ROWS = 1000,                                    /* in the reply to one query */
    LIMIT_QUERY_WRITE_ROWS = 10000,                             /* inserted, changed or removed by one query */
    LIMIT_QUERY_CONDITIONS = 300,
    LIMIT_QUERY_DEPTH = 20,       /* of nested conditions */
    LIMIT_QUERY_VALUES = 1500,    /* of all conditions together */
    LIMIT_QUERY_ITEMS = 500,      /* columns of a reply */
    LIMIT_QUERY_ORDER = 32,       /* columns that order a reply */
    LIMIT_QUERY_PATTERN = 1024,   /* bytes of a pattern of LIKE */
    LIMIT_QUERY_STEPS = 50000000, /* of one comparison of a text with a pattern, or of two JSON values */
    LIMIT_QUERY_READ_MS = 10000,  /* computing time of one SELECT of the embedded backend */
    LIMIT_QUERY_WRITE_MS = 5000,  /* of one change of the embedded backend, which other changes wait for */
    LIMIT_TABLE_COLUMNS = 200,
    LIMIT_TABLE_CHOICES = 100, /* values that a CHECK permits */
    LIMIT_BROADCASTS_WAITING = 1024,
    LIMIT_HOSTED_CHANNELS = 100,    /* tables and topics over one connection, as the service has it */
    LIMIT_CHANGE_LOG = 20000,       /* newest changes kept for other services that use the same file */
    LIMIT_BACKEND_CONNECTIONS = 64, /* to a database, for statements */
    LIMIT_BACKEND_CONNECTIONS_DEFAULT = 8,
    LIMIT_HOSTED_ADDRESS = 300,    /* characters of an address of the hosted service */
    LIMIT_HOSTED_KEY = 2048,       /* of a key of a project; the legacy ones are JWTs */
    LIMIT_HOSTED_SHAPES = 1024,    /* tables of a project whose columns are kept in memory */
    LIMIT_HOSTED_SHAPE_MS = 30000, /* how long they are kept */
    LIMIT_HOSTED_COLUMNS = 1600,   /* of one table of a project, as PostgreSQL has it */
    LIMIT_HOSTED_REPLY = 4 << 20,  /* bytes of an answer of the management API */
    LIMIT_HOSTED_PROJECTS = 1000,  /* of one account */
    LIMIT_HOSTED_LOGIN_MS = 10000, /* one request of a login; up to three are made */
    LIMIT_HOSTED_LOGIN_TRIES = 3,
    LIMIT_HOSTED_CODE_MS = 15 * 60 * 1000,       /* a person's time to bring the code of a login */
    LIMIT_HOSTED_SETUP_MS = 600000,              /* all steps of a set-up */
    LIMIT_HOSTED_CALL_MS = 60000,                /* one request of the management API; a step of the set-up */
    LIMIT_BACKEND_CALL_MS = 20000,               /* one call that waits for a database, unless a setting says else */
    LIMIT_BACKEND_READY_MS = 2000,               /* the question whether the database answers */
    LIMIT_BACKEND_SCRIPT_MS = 120000,            /* the set-up of a database */
    LIMIT_BACKEND_JSON_BYTES = 8 << 20,          /* one JSON value as jsonb prints it, with blanks and whole numbers */
    LIMIT_BACKEND_ROW_BYTES = 32 << 20,          /* one row of a database */
    LIMIT_BACKEND_REST_BYTES = 12 << 20,         /* of it what is neither raw_data, result nor error_message */
    LIMIT_BACKEND_SET_ASIDE = 32,                /* rows too large to be read that one list of work gets past */
    LIMIT_BACKEND_ATTEMPTS = 6,                  /* of a statement that may be repeated */
    LIMIT_BACKEND_SHAPES = 256,                  /* tables whose columns are kept; the oldest makes room */
    LIMIT_BACKEND_SHAPE_MS = 250,                /* how long the columns of a table are kept */
    LIMIT_HOSTED_PATH = 16 << 10,                /* path and query of one request to the hosted service */
    LIMIT_HOSTED_SCAN_ROWS = 20000,              /* read at most to count what waits in one table of a project */
    LIMIT_EVENT_IMAGE = LIMIT_BACKEND_ROW_BYTES, /* one row in an event as JSON; a change of a larger one is a gap */
    LIMIT_EVENT_MESSAGE = 4 * LIMIT_EVENT_IMAGE, /* the rows of one event, from the server */
    LIMIT_EVENT_RANGE = 200000,                  /* changes that one look at the outbox finds; more are a gap */
    LIMIT_EVENT_TRANSACTION = 256 << 20, /* the rows of one transaction of the logical stream; a larger one is a gap */
    LIMIT_EVENT_RELATIONS = 10000,       /* tables of one logical stream */
    LIMIT_LOGICAL_SLOT_MS = 5000,        /* how long a slot waits for the transactions that are open */
    LIMIT_LOGICAL_SILENT_MS = 45000,     /* a stream that answers nothing for so long has lost its server */
    LIMIT_PG_COLUMNS = 1664,             /* of a table of PostgreSQL */
    LIMIT_NOTIFY_BYTES = 7999,           /* of a notification of PostgreSQL */
    LIMIT_CUSTOM_NOTES = 1024,           /* rows of Custom Mode whose last lease is kept in memory */
    LIMIT_CUSTOM_KEY = 512,              /* bytes of the key of a row of Custom Mode */
    LIMIT_CUSTOM_PAGES = 20,             /* read at once for rows that this machine may claim */

    /* apps in Custom Mode */
    LIMIT_LOCK_REPLY = 64 << 10,      /* bytes of an app's answer about a lock, or to a webhook */
    LIMIT_DELIVERY_BYTES = 8 << 20,   /* the body of one webhook: a result of LIMIT_RESULT_BYTES with its frame */
    LIMIT_APP_DELIVERIES = 1000,      /* of one app that it has not accepted; beyond them it gets no further task */
    LIMIT_DELIVERY_THREADS = 8,       /* apps that are told at the same time */
    LIMIT_DELIVERY_PAUSE_MS = 300000, /* the longest pause between two tries */
    LIMIT_APP_AWAY_FIRST_MS = 1200, /* an app that does not answer is looked for after this pause, doubled up to ... */
    LIMIT_APP_AWAY_MS = 60000,
    LIMIT_DELIVERY_START_MS = 10000, /* after an app's start its ends are tried every ... */
    LIMIT_DELIVERY_START_PAUSE_MS = 250,
    LIMIT_DELIVERY_KEPT_MS = 86400000, /* how long a delivered or dropped end is kept, without its content */

    /* outgoing HTTP */
    LIMIT_SSE_EVENT = 4 << 20,      /* one event or line of an upstream's stream */
    LIMIT_UPSTREAM_HEADERS = 200,   /* header lines of an upstream's answer */
    LIMIT_UPSTREAM_HEAD = 64 << 10, /* bytes of these header lines */
    LIMIT_UPSTREAM_INTERIM = 100,   /* interim answers (1xx) before an upstream's answer */
    LIMIT_UPSTREAM_IDLE = 256,      /* idle connections kept for chats: so many by libcurl, and by src/net/plain.c */
    LIMIT_CALL_IDLE = 64,           /* idle connections kept for complete answers */

    /* vectors */
    LIMIT_DIMENSIONS = 8192,
    LIMIT_VECTOR_METADATA = 64 << 10, /* JSON text of one vector */
    LIMIT_VECTOR_ID_BYTES = 512,
    LIMIT_VECTOR_NAMESPACE_BYTES = 300,
    LIMIT_VECTOR_NAMESPACES = 10000,
    LIMIT_VECTORS_PER_CALL = 10000, /* upserted, or removed by id */
    LIMIT_VECTOR_HEAD = 32 << 20,   /* the line of JSON before the numbers of a bulk upsert */
    LIMIT_VECTOR_ROWS = 64 << 20,   /* of one namespace */
    LIMIT_VECTOR_LIST = 1000,
    LIMIT_VECTOR_CONDITIONS = 32,         /* of a metadata filter */
    LIMIT_VECTOR_CHOICES = 1000,          /* of one $in */
    LIMIT_VECTOR_COLUMN_BYTES = 64 << 20, /* distinct values of a metadata key kept in memory */
    LIMIT_VECTOR_TEXT_BYTES = 4096,       /* of a hybrid search */
    LIMIT_VECTOR_HELPERS = 3,             /* threads that take a part of a pass over many rows */
    LIMIT_TOP_K = 1000,
    LIMIT_BODY_VECTORS =
        96 << 20, /* 10,000 vectors of 384 dimensions printed by JavaScript; at most twice this is in the arena */

    /* registered vector stores */
    LIMIT_STORE_PAGES = 4096,               /* of one operation that reads page by page, 1000 records each */
    LIMIT_STORE_REPLY = LIMIT_BODY_VECTORS, /* the rows of one request as text */
    LIMIT_STORE_SMALL_REPLY = 8 << 20,      /* of a request that reads no records */
    LIMIT_STORE_LOOSE_BYTES = 1 << 20,      /* bytes of an incomplete row on one connection to PostgreSQL */
    LIMIT_STORE_CONNECT_MS = 10000,
    LIMIT_STORE_CHECK_MS = 20000, /* the check of a store at its registration */
    LIMIT_LOOKUPS = 64,           /* names that are looked up at the same time */

    /* embeddings */
    LIMIT_EMBED_TEXTS = 2048,     /* in one call */
    LIMIT_EMBED_TEXT = 256 << 10, /* bytes of one text */

    /* forms (multipart/form-data) */
    LIMIT_FORM_PARTS = 64,
    LIMIT_FORM_HEADERS = 16,       /* of one part */
    LIMIT_FORM_NAME = 128,         /* bytes of the name of a part */
    LIMIT_FORM_FIELDS = 320 << 10, /* bytes of all parts that are no files */

    /* speech */
    LIMIT_SPEECH_TEXT = 20000,        /* characters of one request */
    LIMIT_SPEECH_SENTENCE = 300,      /* characters spoken at a time; a longer sentence is split */
    LIMIT_SPEECH_VOICE = 64,          /* bytes of a voice's name, and of a language's */
    LIMIT_SPEECH_FRAME = 64 << 10,    /* bytes of one frame between the service and a speech worker */
    LIMIT_SPEECH_AUDIO = 16 << 20,    /* bytes of one sentence's audio */
    LIMIT_SPEECH_LIST = 64 << 10,     /* bytes of a worker's list of voices */
    LIMIT_SPEECH_SENTENCE_MS = 30000, /* time of a worker for one sentence, and for its start */
    LIMIT_SPEECH_WORKERS = 8,         /* of one engine */
    LIMIT_SPEECH_WAITING = 200,       /* requests that wait for a worker of one engine */
    LIMIT_SPEECH_WORKER_MB = 1024,    /* address space of a worker */
    LIMIT_SPEECH_MARK_BYTES = 512,    /* of the text or the target of a Markdown link; longer ones stay as they are */
    LIMIT_SPEECH_CACHE_MB = 1024,     /* of kept renderings, as a setting may say */
    LIMIT_SPEECH_IDLE_S = 86400,      /* of an idle worker, as a setting may say */
    LIMIT_SPEECH_REPLY = 16 << 20,    /* bytes of audio that a provider sends for one sentence */
    LIMIT_SPEECH_EVENT = 1 << 20,     /* bytes of one event with a part of it */
    LIMIT_SPEECH_EVENTS = 24 << 20,   /* bytes of all events of one sentence: its audio in base64 */
    LIMIT_SPEECH_REFUSAL = 64 << 10,  /* bytes of a refusal that are read */
    LIMIT_SPEECH_WAV_HEAD = 16 << 10, /* bytes of a WAV before its samples */
    LIMIT_SPEECH_LEVELS = 256,        /* voices of providers whose loudness is known */
    LIMIT_SPEECH_REPLY_MS = 120000,   /* time of a provider for one sentence */
    LIMIT_SPEECH_PROGRAM_TEXT = 4 << 10,  /* bytes of one sentence to a program of this machine */
    LIMIT_SPEECH_MODEL_END = 64 << 10,    /* bytes at the end of a model's file that are searched for its speakers */
    LIMIT_SPEECH_LANGUAGES = 256,         /* of a provider's voices, that are listed */
    LIMIT_SPEECH_REMOTE = 8,              /* requests to providers at one time */
    LIMIT_SPEECH_REQUEST = 32 << 10,      /* bytes of a request for one sentence to a provider */
    LIMIT_SPEECH_VOICES = 2000,           /* that a provider lists */
    LIMIT_SPEECH_VOICES_REPLY = 4 << 20,  /* bytes of that list */
    LIMIT_SPEECH_UPLOAD = 25 << 20,       /* bytes of a recording to transcribe */
    LIMIT_SPEECH_RECORDING_S = 7200,      /* time of a recording to transcribe */
    LIMIT_SPEECH_TRANSCRIBE_MS = 1800000, /* time of an engine for one recording */
    LIMIT_SPEECH_TRANSCRIPT = 1 << 20,    /* bytes of one transcript */
    LIMIT_SPEECH_TRANSCRIPT_REPLY = 16 << 20, /* bytes of a provider's answer with one */
    LIMIT_SPEECH_LISTENERS = 1,               /* requests that have the microphone at one time */
    LIMIT_SPEECH_LISTEN_MS = 600000,          /* time of one of them, as its body may say */
    LIMIT_SPEECH_SILENCE_MS = 10000,          /* of silence that ends listening, as a setting may say */
    LIMIT_SPEECH_DEVICE = 256,                /* bytes of the microphone's name */
    LIMIT_SPEECH_GUESS = 2048,                /* bytes of what a segment that goes on seems to say */
    LIMIT_SPEECH_SESSIONS = 4,                /* over WebSockets, created and not yet ended */
    LIMIT_SPEECH_SESSIONS_OF_CALLER = 2,
    LIMIT_SPEECH_SESSION_OPEN_MS = 60000,     /* from the creation of a session to its WebSocket */
    LIMIT_SPEECH_SESSION_MS = 600000,         /* of sound */
    LIMIT_SPEECH_SESSION_WALL_MS = 1200000,   /* of the session */
    LIMIT_SPEECH_SESSION_QUIET_MS = 10000,    /* without a message: the sound has ended */
    LIMIT_SPEECH_SESSION_FRAME = 64 << 10,    /* bytes of one message of samples */
    LIMIT_SPEECH_SESSION_MESSAGE = 1 << 10,   /* bytes of one message of text */
    LIMIT_SPEECH_SESSION_WAITING = 256 << 10, /* bytes of samples that were not yet taken; then nothing is read */
    LIMIT_SPEECH_UNHEARD = 1 << 20,           /* bytes of sound that wait for the engine; then no more is taken */
    LIMIT_SPEECH_HEARINGS = 2,                /* recordings that are transcribed at one time */
    LIMIT_SPEECH_PHRASES = 1000,              /* that one request expects to hear */
    LIMIT_SPEECH_MODELS = 32,                 /* of one engine, in its folder */
    LIMIT_SPEECH_PHRASE = 256,                /* bytes of one of them */

    /* language models */
    LIMIT_LLM_PLAN_BYTES =
        128 << 20, /* the requests to several accounts for one chat; accounts beyond this are left out of the plan */
    LIMIT_LLM_READ_ON_LOOP = 64 << 10, /* of an answer that is not streamed; a worker parses a larger answer */
    LIMIT_MODELS = 2000,               /* of one provider's list */
    LIMIT_MODEL_BYTES = 256,   /* of a model's name or label in a provider's list or answer; longer ones are left out */
    LIMIT_TOOL_CALLS = 128,    /* of one answer */
    LIMIT_TOOL_ID_BYTES = 512, /* of the id or name of one tool call in an answer */
    LIMIT_TOKENS = 1 << 30,    /* of one answer, as its provider counts them; a larger count is stored as this */
    LIMIT_STOP_BYTES = 256,    /* of one stop sequence */
    LIMIT_TOOLS = 512,         /* of one request */
    LIMIT_LLM_ANSWER =
        16 << 20, /* text, thoughts, their signatures and the arguments of all tool calls of one answer, each */
    LIMIT_ANSWER_PIECES = 4096,             /* stretches of text, thoughts and tool calls in one answer */
    LIMIT_MESSAGES = 2000,                  /* of one request */
    LIMIT_RING_BYTES = 512 << 10,           /* events of one stream kept for a client that comes back */
    LIMIT_KEPT_STREAMS = 256,               /* streams kept for a client that comes back */
    LIMIT_BLOCKS = 1000,                    /* of one message */
    LIMIT_FILE_ADDRESS_BYTES = 8192,        /* of the address of a file in a message */
    LIMIT_FETCHED_FILES = 16,               /* files of one request that are given by address and must be fetched */
    LIMIT_FETCHED_BYTES = 24 << 20,         /* of all these files; encoded as base64 they reach LIMIT_BODY_CHAT */
    LIMIT_FETCH_MS = 60000,                 /* for all these files together */
    LIMIT_FETCH_REDIRECTS = 5,              /* of one file */
    LIMIT_CALLER_RESPONSES = 1000,          /* answers of /v1/responses that are kept for one caller ... */
    LIMIT_CALLER_RESPONSE_BYTES = 64 << 20, /* ... with the threads they continue ... */
    LIMIT_KEPT_RESPONSES = 10000,           /* ... and for all */
    LIMIT_KEPT_RESPONSE_BYTES = 256 << 20,
    LIMIT_RESPONSE_REPEATS = 256 << 10, /* one member of a request that the answer repeats */
    LIMIT_LLM_BROKEN_MODELS = 16,       /* models of one account whose failures are counted */
    LIMIT_LLM_ACCOUNTS = 100,
    LIMIT_PROVIDER_ACCOUNTS = 50,    /* stored accounts of providers */
    LIMIT_PROVIDER_MODELS = 200,     /* in the list of models that the person wrote for one account */
    LIMIT_PROVIDER_HEADERS = 20,     /* that an account sends in addition to its key */
    LIMIT_PROVIDER_SECRET = 8192,    /* characters of a key, a header's value or an address */
    LIMIT_LLM_FALLBACKS = 4,         /* accounts tried after the first */
    LIMIT_STAND_IN_BYTES = 16 << 10, /* one text in an answer of the stand-in */
    LIMIT_STAND_IN_CALLS = 16,       /* tool calls that the rules of one text ask for */
    LIMIT_STAND_IN_PIECES = 256,     /* of one text in a streamed answer of the stand-in */
    LIMIT_STAND_IN_WAIT_MS = 60000,  /* between two pieces, as the rule `slow` asks for it */
    LIMIT_STAND_IN_RETRY_S = 3600,   /* the Retry-After that the rule `fail` asks for */
    LIMIT_MODEL_FILES = 500,         /* models in the models folder */
    LIMIT_LLAMA_SERVERS = 16,        /* llama-server processes at the same time */

    /* Hearth as an MCP server (/mcp) */
    LIMIT_MCP_SESSIONS = 4096,         /* of the handshake era, in total */
    LIMIT_MCP_CALLER_SESSIONS = 64,    /* of one caller; the one unused for longest makes room */
    LIMIT_MCP_BATCH = 64,              /* frames in one body */
    LIMIT_MCP_SUBSCRIPTIONS = 64,      /* resources that one session or stream follows */
    LIMIT_MCP_URI_BYTES = 256,         /* of a resource's address */
    LIMIT_MCP_PAGE = 50,               /* resources or tasks in one answer */
    LIMIT_MCP_WAIT_S = 600,            /* how long one call waits for a task */
    LIMIT_MCP_LIST_WAIT_MS = 20000,    /* how long tools/list waits for the configured servers together */
    LIMIT_MCP_BRIDGE_FRAME = 32 << 20, /* one line that `hearth mcp serve` reads */
    LIMIT_MCP_BRIDGE_CALLS = 32,       /* requests of `hearth mcp serve` that wait at the same time */

    /* MCP servers that Hearth uses */
    LIMIT_MCP_FRAME = 16 << 20,        /* one frame from a server, or to one */
    LIMIT_MCP_OUT_BYTES = 32 << 20,    /* frames that a server has not read yet */
    LIMIT_MCP_CALLS = 256,             /* requests of one connection that wait for their responses */
    LIMIT_MCP_PAGES = 100,             /* of one list */
    LIMIT_MCP_ITEMS = 2000,            /* tools, resources or prompts of one list */
    LIMIT_MCP_LIST_BYTES = 8 << 20,    /* frames of all pages of one list */
    LIMIT_MCP_NAME_BYTES = 256,        /* of a tool or prompt */
    LIMIT_MCP_TARGET_URI_BYTES = 4096, /* of a resource of a server */
    LIMIT_MCP_CURSOR_BYTES = 4096,     /* that points to the next page */
    LIMIT_MCP_ROUNDS = 16,             /* questions (input_required) within one call of the stateless era */
    LIMIT_MCP_ROUND_INPUTS = 8,        /* questions of one such round */
    LIMIT_MCP_REQUESTS = 8,            /* requests of one server that are answered at the same time ... */
    LIMIT_MCP_REQUESTS_WAITING = 64,   /* ... and that wait for that; more are refused */
    LIMIT_MCP_REQUEST_MS = 600000,     /* how long one request of a server may wait for its answer */
    LIMIT_MCP_PROBE_MS = 5000,         /* how long a server may take to say which era of the protocol it speaks */
    LIMIT_MCP_EOF_MS = 2000,           /* between the end of a server's standard input and SIGTERM */
    LIMIT_MCP_TASK_POLL_MS = 30000,    /* the longest time between two questions for a task of a server */
    LIMIT_MCP_SESSION_BYTES = 1024,    /* of a server's session id */
    LIMIT_MCP_HEADER_BYTES = 8192,     /* of the value of a header that is sent to a server */
    LIMIT_MCP_ENDPOINT_BYTES = 4096,   /* of the address that an SSE server names */
    LIMIT_MCP_PARAMS = 32,             /* arguments of one tool that are mirrored into headers */
    LIMIT_MCP_LOGIN_MS = 600000,       /* how long a person may take to log in */
    LIMIT_MCP_LOGINS = 64,             /* that wait for a person */
    LIMIT_MCP_OAUTH_REPLY = 256 << 10, /* metadata, a registration or tokens */
    LIMIT_MCP_LOGIN_ENTRIES = 256,     /* servers whose logins are kept in memory */
    LIMIT_MCP_ISSUERS = 16,            /* authorization servers that the metadata of one server names */
    LIMIT_MCP_SCOPE_BYTES = 4096,      /* of all words of a scope */
    LIMIT_MCP_TOKEN_BYTES = 16 << 10,  /* of an access token or a refresh token */
    LIMIT_MCP_CLIENT_BYTES = 4096,     /* of a client id or a client secret */
    LIMIT_MCP_KEY_BYTES = 8192,        /* of a client's private key as PEM */
    LIMIT_MCP_RSA_BITS = 4096,         /* of such a key */
    LIMIT_MCP_ASSERTION_S = 120,       /* how long an assertion that the key signed is valid */
    LIMIT_MCP_STACK = 256 << 10,       /* of a thread of one connection */
    LIMIT_MCP_LOGS_A_SECOND = 100,     /* log messages of one server that are passed on */

    /* conversations of agents */
    LIMIT_TURNS_KEPT = 64,         /* ended turns whose events are kept for viewers that come back */
    LIMIT_AGENT_SESSIONS = 2000,   /* of one caller */
    LIMIT_AGENT_MESSAGE = 1 << 20, /* bytes of what a caller says in one turn */
    LIMIT_AGENT_BODY = 8 << 20,    /* a request with such a message */
    LIMIT_CONTEXT_TURNS = 200,     /* of the history that one turn reads; older ones are in the summary */
    LIMIT_THREAD_TURNS = 10000,    /* of one thread */
    LIMIT_TURN_THOUGHTS = 1000,    /* sentences about one turn that are kept */
    LIMIT_TURN_BLOCKS = 4 << 20,   /* JSON text of the rich blocks of one turn that are kept */

    /* definitions of those servers */
    LIMIT_MCP_SERVERS = 100,
    LIMIT_MCP_SERVER_NAME = 64,       /* characters of a server's name */
    LIMIT_MCP_TAGS = 32,              /* of one server */
    LIMIT_MCP_HEADERS = 32,           /* that are sent to one server */
    LIMIT_MCP_DEFINITION = 1 << 20,   /* bytes of one server's definition as JSON */
    LIMIT_MCP_IMPORT_BYTES = 4 << 20, /* a file of server definitions of another program */
    LIMIT_MCP_INPUTS = 64,            /* values that such a file asks for */
    LIMIT_MCP_TOOL_BYTES = 256 << 10, /* name, description and schema of one tool, as JSON */
    LIMIT_MCP_PINS = 4000,            /* tools that one server has ever had, as they were at first sight */
    LIMIT_MCP_PIN_BYTES = 16 << 20,   /* of their definitions */
    LIMIT_MCP_SAMPLE_TOKENS = 8192,   /* of a model's answer that a server wants; a higher wish counts as this */
    LIMIT_MCP_SAMPLE_HINTS = 8,       /* names of models that a server would like; more are not read */
    LIMIT_MCP_SERVER_CALLS = 64,      /* of one server at the same time */
    LIMIT_MCP_CALLER_CALLS = 32,      /* of one caller at the same time, to all servers */

    /* usage */
    LIMIT_USAGE_ROWS =
        10000, /* for one day and one run of the service; models beyond this are counted as model "other" */
    LIMIT_USAGE_PROVIDERS = 128,  /* providers with metrics of their own; the rest are counted as "other" */
    LIMIT_USAGE_NAME_BYTES = 256, /* of a provider or model; a longer name is cut */

    /* settings */
    LIMIT_CONFIG_BYTES = 64 << 10, /* the configuration file */
    LIMIT_UNIT_BYTES = 64 << 10,   /* a systemd unit or an autostart entry that is read or written */
    LIMIT_SERVICE_LOG_BYTES =
        10 << 20, /* hearth.log of a service without systemd: beyond this the next start begins a new one */
    /* a backup that is restored */
    LIMIT_RESTORE_RATIO =
        100, /* the files may take this many times the size of the archive (--max-mb allows more) ... */
    LIMIT_RESTORE_FLOOR = 64 << 20, /* ... and always at least this much */
    LIMIT_RESTORE_SMALL = 1 << 20,  /* the manifest, the settings file */
    LIMIT_RESTORE_KEY = 4096,

    LIMIT_DISK_FLOOR = 4 << 20, /* below this many free bytes the service reports a full disk */
    LIMIT_SETTING_BYTES = 4096, /* one value */
};

#define LIMIT_ATTEMPT                                                                                                  \
    INT64_C(9007199254740991) /* 2^53 - 1: the largest integer that every JSON reader keeps (RFC 7493 section 2.2) */
#define LIMIT_CHILD_FILE_BYTES (INT64_C(16) << 30) /* the largest file that a child in a sandbox may write */
