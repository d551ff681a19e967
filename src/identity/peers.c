#include "identity/peers.h"

#include "base/limits.h"
#include "base/slice.h"
#include "identity/contacts.h"
#include "identity/launch_list.h"
#include "identity/state.h"
#include "os/peer.h"
#include "os/peer_process.h"

#include <stdlib.h>
#include <string.h>

/* The content of http_peer.note. All but the last three members are constant. */
struct peer_note {
    int r; /* 0: the kernel named the owner */
    struct peer_owner owner;
    _Atomic uint64_t launch;  /* serial of the start whose process tree contains the peer; 0: none */
    atomic_bool is_outside;   /* the peer belongs to no program that Hearth started before the connection */
    _Atomic uint64_t contact; /* hash of the app whose tree was searched last */
};

enum peers_mode peers_mode_of(const char *name)
{
    if (strcmp(name, "launched") == 0)
        return PEERS_LAUNCHED;
    return strcmp(name, "any") == 0 ? PEERS_ANY : PEERS_SAME_USER;
}

/* A lack of resources says nothing about the peer. */
static int refuse_want(int r, struct err *e)
{
    return err_set(e, r == -ENOBUFS ? -ENOMEM : r, err_code_of(r, "OUT_OF_MEMORY"),
                   "The service lacks the descriptors or the memory to find out who calls: try again in a moment.");
}

static bool is_want(int r)
{
    return r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS;
}

/* Fails only for a lack of resources, and then keeps no note. */
static int look(struct identity *id, struct http_peer *connection, struct peer_note **ret, struct err *e)
{
    struct peer_owner owner = { 0 };
    struct peer_note *note;
    int r;

    *ret = http_peer_note(connection);
    if (*ret)
        return 0;
    r = peer_owner(&id->kernel, &connection->remote.any, &connection->local.any, &owner);
    if (is_want(r))
        return refuse_want(r, e);
    if (r == 0 && !http_peer_is_connected(connection))
        r = -ENOENT; /* the connection was reset, and another program may have taken its port */
    note = xcalloc(1, sizeof(*note));
    note->r = r;
    note->owner = owner;
    *ret = http_peer_keep_note(connection, note);
    return 0;
}

static const char *subject_of(const struct launch_what *what)
{
    return what->app_id ? "an app's id" : "a task's id";
}

/* ---- the user ---- */

static int refuse_unknown(const struct http_peer *connection, const struct launch_what *what, struct err *e)
{
    if (http_peer_is_loopback(connection))
        return err_set(
            e, -EPERM, "PEER_NOT_ALLOWED",
            "The program at the other end has closed its connection or is not to be seen from here, and %s is no proof of who calls. A program "
            "in a container needs a developer key, or the setting identity.peers at any.",
            subject_of(what));
    return err_set(
        e, -EPERM, "PEER_NOT_ALLOWED",
        "From another machine %s is no proof of who calls: use a developer key, or set identity.peers to any.",
        subject_of(what));
}

/* Root is accepted: root can do everything anyway. */
static int check_user(const struct identity *id, const struct http_peer *connection, const struct peer_note *note,
                      const struct launch_what *what, struct err *e)
{
    if (note->r < 0)
        return refuse_unknown(connection, what, e);
    if (note->owner.uid == id->uid || note->owner.uid == 0)
        return 0;
    return err_set(
        e, -EPERM, "PEER_NOT_ALLOWED",
        "The caller runs as another user of this machine (uid %u), and %s is no proof of who calls. Run it as the user of the service, use a "
        "developer key, or set identity.peers to any.",
        (unsigned)note->owner.uid, subject_of(what));
}

/* ---- the program ---- */

static bool is_proven(struct identity *id, const struct peer_note *note, const struct launch_what *what)
{
    uint64_t serial = atomic_load(&note->launch);

    return serial && launches_runs(id, what, serial);
}

static int check_tree(struct identity *id, struct peer_note *note, const struct launch_what *what, struct err *e)
{
    struct peer_process found;
    struct launch_pids pids;

    int r;

    launches_find_pids(id, what, true, &pids);
    r = peer_process_find(note->owner.inode, pids.pids, pids.n, &found);
    if (r < 0)
        return refuse_want(r, e);
    if (r == 0)
        found.root = 0;
    for (size_t i = 0; i < pids.n && found.root; i++)
        if (pids.pids[i] == found.root) {
            atomic_store(&note->launch, pids.serials[i]);
            return 0;
        }
    return err_set(
        e, -EPERM, "PEER_NOT_ALLOWED",
        "Only programs that Hearth started may use %s here (identity.peers is launched): start it with Hearth, send its secret, use a developer "
        "key, or set identity.peers to same_user.",
        subject_of(what));
}

/* Reports to the person, once, which other program uses the id. */
static void note_contact(struct identity *id, struct peer_note *note, const char *app_id)
{
    uint64_t app = hash_fast(slice_of(app_id));

    if (atomic_exchange(&note->contact, app) != app)
        contacts_note(id->contacts, app_id, note->owner.inode);
}

/* Only processes of the tagged program reach a tagged listener. */
static int check_tag(struct identity *id, const struct http_peer *connection, const struct launch_what *what,
                     struct err *e)
{
    if (launches_runs(id, what, connection->tag))
        return 0;
    return err_set(
        e, -EPERM, "PEER_NOT_ALLOWED",
        "A program in a sandbox may use its own id only, whatever identity.peers says; this is another one.");
}

static bool is_local(const struct http_peer *connection)
{
    return !connection || connection->remote.any.sa_family == AF_UNIX;
}

int peers_check_user(struct identity *id, struct http_peer *connection, const struct launch_what *what, struct err *e)
{
    struct peer_note *note;
    int r;

    if (is_local(connection) || connection->tag)
        return 0;
    r = look(id, connection, &note, e);
    return r < 0 ? r : check_user(id, connection, note, what, e);
}

int peers_check(struct identity *id, struct http_peer *connection, const struct launch_what *what, bool is_launchable,
                struct err *e)
{
    struct peer_note *note;
    int r;

    if (is_local(connection))
        return 0;
    if (connection->tag)
        return check_tag(id, connection, what, e);
    if (id->peers == PEERS_ANY)
        return 0;
    r = look(id, connection, &note, e);
    if (r == 0)
        r = check_user(id, connection, note, what, e);
    if (r < 0 || !is_launchable)
        return r;
    if (id->peers == PEERS_LAUNCHED)
        return is_proven(id, note, what) ? 0 : check_tree(id, note, what, e);
    if (what->app_id)
        note_contact(id, note, what->app_id);
    return 0;
}

/* ---- programs without an id ---- */

static int refuse_own(struct err *e, const char *why)
{
    return err_set(
        e, -EPERM, "PEER_NOT_ALLOWED",
        "Without a key only programs of this machine and of the user of the service are let in (llm.ollama_open): %s. "
        "Send a developer key as Authorization: Bearer, or an app's id as x-app-id.",
        why);
}

static int check_outside(struct identity *id, const struct peer_note *note, struct err *e)
{
    struct peer_process found;
    pid_t pids[LIMIT_CHILDREN];
    size_t n = launches_all_pids(id, pids, ARRAY_SIZE(pids));
    int r;

    if (n == 0)
        return 0;
    r = peer_process_find(note->owner.inode, pids, n, &found);
    if (r < 0)
        return refuse_want(r, e);
    if (r == 0)
        return refuse_own(e, "which program this is cannot be seen");
    return found.root ? refuse_own(e, "Hearth started this one, which has an id of its own") : 0;
}

int peers_check_own(struct identity *id, struct http_peer *connection, bool may_look, struct err *e)
{
    struct peer_note *note;
    int r;

    if (is_local(connection) || connection->tag || !http_peer_is_loopback(connection))
        return refuse_own(e, "this one is in a sandbox or on another machine");
    r = look(id, connection, &note, e);
    if (r < 0)
        return r;
    if (note->r < 0 || note->owner.uid != id->uid)
        return refuse_own(e, "this one is another user's, or cannot be seen from here");
    if (!may_look || atomic_load(&note->is_outside))
        return 0;
    r = check_outside(id, note, e);
    if (r == 0)
        atomic_store(&note->is_outside, true);
    return r;
}

/* A program that has closed its connection already may be anybody on this machine, so it is refused. */
bool peers_may_be_admin(struct identity *id, struct http_peer *connection)
{
    struct peer_note *note;

    if (is_local(connection))
        return true;
    if (connection->tag || look(id, connection, &note, NULL) < 0)
        return false;
    return note->r < 0 ? !http_peer_is_loopback(connection) : note->owner.uid == id->uid || note->owner.uid == 0;
}

int peers_check_kernel(struct identity *id, struct err *e)
{
    return id->peers == PEERS_ANY ? 0 : peer_kernel_check(&id->kernel, e);
}

bool peers_has_to_wait(struct identity *id, const struct http_peer *connection, const struct launch_what *what)
{
    const struct peer_note *note = connection ? http_peer_note(connection) : NULL;

    if (id->peers != PEERS_LAUNCHED || is_local(connection) || connection->tag)
        return false;
    return !note || !is_proven(id, note, what);
}
