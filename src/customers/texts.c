#include "customers/texts.h"

/* What a person can do about it. */
#define RECOVER_BEFORE                                                                                                 \
    "If you want to keep it, sign in before then and recover it; everything is still there. If not, there is nothing " \
    "to do."
#define ASK_ADMINISTRATOR                                                                                              \
    "An administrator froze it, so it cannot be recovered by signing in. If this is a mistake, write to the people "   \
    "who run the service."

#define STAYS_FROZEN_UNTIL                                                                                             \
    "It stays frozen until " WHEN ". Then everything in it is deleted, and cannot be brought back."
#define HAS_A_NEW_DATE                                                                                                 \
    "The deletion of your account had to wait. It has a new date: on " WHEN                                            \
    " your account and everything in it will be deleted for good."
#define ENDS_ON "On " WHEN " your account and everything in it will be deleted for good."

static const struct customer_text texts[] = {
    [CUSTOMER_MAIL_FROZEN] =
        {
            .subject = "Your account will be deleted",
            .paragraphs = {"The deletion of your account was asked for. From now on it is frozen: it cannot be used, "
                           "and costs nothing.",
                           STAYS_FROZEN_UNTIL,
                           "Changed your mind, or was it not you? Sign in before that day and recover the account; "
                           "everything is still there."},
            .paragraphs_by_admin = {"Your account was frozen: from now on it cannot be used, and costs nothing.",
                                    STAYS_FROZEN_UNTIL, ASK_ADMINISTRATOR},
        },
    [CUSTOMER_MAIL_MOVED] =
        {
            .subject = "Your account has a new deletion date",
            .paragraphs = {HAS_A_NEW_DATE, RECOVER_BEFORE},
            .paragraphs_by_admin = {HAS_A_NEW_DATE, ASK_ADMINISTRATOR},
        },
    [CUSTOMER_MAIL_RECOVERED] =
        {
            .subject = "Your account is active again",
            .paragraphs = {"Your account was recovered. It works as before, and nothing in it was lost.",
                           "If it was not you who recovered it, change your password."},
        },
    [CUSTOMER_MAIL_REMINDER] =
        {
            .subject = "Your account will soon be gone",
            .paragraphs = {ENDS_ON, RECOVER_BEFORE},
            .paragraphs_by_admin = {ENDS_ON, ASK_ADMINISTRATOR},
        },
    [CUSTOMER_MAIL_DELETED] =
        {
            .subject = "Your account was deleted",
            .paragraphs = {"Your account was deleted, and what was in it is being erased everywhere. It cannot be "
                           "brought back.",
                           "This is the last mail about it: your address was used once more to send it, and is kept "
                           "no longer. You can register with it again."},
        },
};

const struct customer_text *customer_text_of(enum customer_mail mail)
{
    return &texts[mail];
}

const struct code_mail sign_in_code_text = {
    .subject = "Your sign-in code",
    .opening = "Your sign-in code is",
    .use = "Enter it where you asked for it.",
    .warning =
        "If it was not you who asked, ignore this mail: without the code nobody is signed in. Do not pass it on.",
};
