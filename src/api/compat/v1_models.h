/* The models of all configured providers under their names in the compatible routes. For handlers, on a worker of the
 * long pool: the lists are requested from the providers. In the request's arena. */
#pragma once

#include "api/route.h"

struct v1_listed_model {
    const char *id; /* the model's name, or provider/model */
    const char *provider, *model, *name;
    int64_t created_s; /* since 1970; 0: unknown */
};
struct v1_model_list {
    struct v1_listed_model *items;
    size_t n, n_room;
};

struct v1_model_list v1_list_models(struct request *req);
