/* Users who signed up at the face for apps of the hosted service (table face_users). Any thread. */
#pragma once

#include "store/store.h"

struct face_user_row {
    const char *id;                                        /* UUID */
    const char *email;                                     /* unique; as face/password.h normalises it */
    const char *password;                                  /* hash of face/password.h */
    const char *user_data;                                 /* JSON object: what the user says of itself */
    const char *created_at, *updated_at, *last_sign_in_at; /* the store's; last_sign_in_at may be NULL */
};

/* -EEXIST USER_ALREADY_EXISTS, -EDQUOT TOO_MANY_USERS. */
int store_face_users_insert(struct store *s, const struct face_user_row *row, struct err *e) MUST_CHECK;
/* -ENOENT USER_NOT_FOUND. */
int store_face_users_find(struct store *s, struct arena *a, const char *id_or_email, struct face_user_row *ret,
                          struct err *e) MUST_CHECK;
/* In order of e-mail. */
int store_face_users_list(struct store *s, struct arena *a, struct face_user_row **ret, size_t *ret_n,
                          struct err *e) MUST_CHECK;

struct face_user_change { /* NULL members stay as they are */
    const char *id, *email, *password, *user_data;
    const char *kept_session; /* a new password ends every other session; NULL: every one */
};
/* -ENOENT USER_NOT_FOUND, -EEXIST EMAIL_EXISTS. */
int store_face_users_change(struct store *s, const struct face_user_change *change, struct err *e) MUST_CHECK;
/* Ends the user's sessions as well. -ENOENT USER_NOT_FOUND. */
int store_face_users_remove(struct store *s, const char *id, struct err *e) MUST_CHECK;
