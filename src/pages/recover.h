/* Private to src/pages: what the answers of registration recovery mean to people. */
#ifndef PAGES_RECOVER_H
#define PAGES_RECOVER_H

#include "base/json.h"

/* The row of the probe's state matrix, from its "data": a key of recover.found_heading in web/texts. */
const char *recover_found(const json_t *data);
/* What an error answer of either contract means: a key of recover.problem in web/texts. */
const char *recover_problem(const json_t *answer, bool six_digits);

#endif
