/* The pages of the one-time link: the page that takes the proof and says whether this browser is signed in, and the
 * page of an invalid link. */
#pragma once

#include "api/page.h"

extern const struct page session_page, dead_link_page, unfollowed_link_page;
