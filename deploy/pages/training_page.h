/* Training page: one training as a page (page_maker.h): findings, plots and their numbers, settings, and the
 * command that makes it again. */
#ifndef DP_PAGES_TRAINING_PAGE_H
#define DP_PAGES_TRAINING_PAGE_H

#include "common/base/status.h"

/* Of the training in `directory`, as dp_training_read and dp_page_make. */
DP_MUST_USE
enum dp_status dp_training_make_page(const char *directory, const char *out, struct dp_error *err);

#endif
