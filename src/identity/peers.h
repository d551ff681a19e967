/* May the other end of this connection name itself an app, or report about a task? Ids are names, not secrets: the kernel is asked who holds
 * the other end (os/peer.h), once a connection; what it says is noted with the connection.
 *
 * Setting identity.peers: `same_user` takes ids from programs of the service's user and of root, `launched` those of programs that Hearth
 * starts from these alone, `any` from everybody. Any thread; when peers_has_to_wait() says so, workers only.
 *
 *     r = peers_check(id, connection, &(struct launch_what){ .app_id = app_id }, is_launchable, e);
 */
#pragma once

#include "http/peer.h"
#include "identity/launches.h"

enum peers_mode { PEERS_SAME_USER, PEERS_LAUNCHED, PEERS_ANY };
enum peers_mode peers_mode_of(const char *name);

/* connection NULL: the request came from this process. is_launchable: Hearth is who starts that program.
 * -EPERM PEER_NOT_ALLOWED, with what to do about it. */
int peers_check(struct identity *id, struct http_peer *connection, const struct launch_what *what, bool is_launchable, struct err *e) MUST_CHECK;
/* The part of it that holds with `any` too, for what nobody else may have. */
int peers_check_user(struct identity *id, struct http_peer *connection, const struct launch_what *what, struct err *e) MUST_CHECK;
/* May a browser's session come on this connection? Whoever holds the service's port while no service runs is sent cookie and proof by a tab that is
 * still open. So of this machine's programs those of the service's user and of root are the administrator, whatever the setting says; never
 * one in a sandbox. */
bool peers_may_be_admin(struct identity *id, struct http_peer *connection);
/* Would peers_check() read /proc, or wait for a program that is being started? */
bool peers_has_to_wait(struct identity *id, const struct http_peer *connection, const struct launch_what *what);
