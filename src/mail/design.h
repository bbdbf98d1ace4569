/* Private to src/mail. */
#ifndef MAIL_DESIGN_H
#define MAIL_DESIGN_H

#include "mail/mail.h"
#include "text/colors.h"
#include "text/template.h"

#define MAIL_LAYOUTS 2

struct mail_design {
    const struct sentences *sentences;
    enum language language;
    char *brand_name, *public_url; /* the URL without a slash at its end; NULL: none */
    struct brand_colors colors;
    struct arena *texts; /* of the operator's templates */
    struct template *layouts[MAIL_LAYOUTS];
};

const struct template *mail_design_template(const struct mail_design *design, const char *name);

#endif
