/* The pages of the one-time link: the one that takes the proof and says whether this browser is signed in, and the one of a link that opens nothing. */
#pragma once

#include "api/page.h"

extern const struct page session_page, dead_link_page, unfollowed_link_page;
