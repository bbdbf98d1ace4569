/* Where templates come from: web/templates, built in, or the operator's folder in their place. */
#ifndef TEXT_TEMPLATE_FILES_H
#define TEXT_TEMPLATE_FILES_H

#include "base/arena.h"
#include "text/template.h"

#define TEMPLATE_FILES "web/templates/" /* before their names in embedded_files */

struct template_files {
    const char *folder;  /* RECLAIM_TEXTS: templates/NAME.html in it; NULL: none */
    struct arena *arena; /* of the operator's texts; must outlive the templates */
};

/* For template_parse(). */
struct template_source template_files_source(struct template_files *files);

#endif
