/* Private to src/settings: the rows of the table, their types, and where values come from. */
#ifndef SETTINGS_TABLE_H
#define SETTINGS_TABLE_H

#include "base/arena.h"
#include "base/buf.h"
#include "settings/settings.h"

struct setting;

struct setting_type {
    /* Writes the field. ERR_INPUT when the text is wrong; *wrong is then the wrong part; it is set to the whole text before.
     * The text is a C string in the arena, and the field may point into it. */
    enum err (*parse)(const struct setting *row, struct str text, struct arena *arena, void *field, struct str *wrong);
    /* What is expected: completes the sentence "x is not …". */
    void (*expects)(const struct setting *row, struct buf *out);
    /* The text without secrets; NULL when it can be shown as it is. */
    void (*show)(struct str text, struct buf *out);
};

extern const struct setting_type setting_string, setting_choice, setting_switch, setting_integer, setting_threshold,
    setting_milliseconds, setting_duration, setting_optional_duration, setting_durations, setting_limit, setting_listen,
    setting_cidrs, setting_origins, setting_columns, setting_database, setting_secret, setting_mail_from,
    setting_http_url, setting_smtp_url, setting_amqp_url, setting_hook_secret, setting_storage_key;

/* A URL without the user and password in it. */
void setting_show_url(struct str text, struct buf *out);

struct setting {
    const char *group; /* its heading in the help */
    const char *name;
    const struct setting_type *type;
    size_t field;                             /* in struct settings */
    int64_t min, max;                         /* of the number, the milliseconds or the length */
    size_t items_max;                         /* of a list */
    const char *const *choices;               /* by value, NULL behind the last */
    const char *standard;                     /* the default as text; NULL: the field stays zero */
    void (*compute)(char *into, size_t size); /* the default where it depends on the machine */
    const char *standard_words;               /* the default in words, where the text does not say it */
    bool reloadable;                          /* may change while the program runs */
    const char *help;                         /* one sentence or two */
};

#define SETTINGS_MAX 96
extern const struct setting settings_rows[];
extern const size_t settings_count;

bool setting_is_secret(const struct setting *row); /* also true for what may contain a secret, such as a URL */
/* The row of this name, or of NAME_FILE (then *ret_from_file); NULL when there is none. */
const struct setting *setting_find(const char *name, bool *ret_from_file);
/* The known name that is most similar; NULL when none is. */
const char *setting_nearest(const char *name);
/* The value for messages: shortened, on one line, without passwords. */
void setting_show(const struct setting *row, struct str text, struct buf *out);

/* The value that was given for one row. */
struct given {
    char *text; /* NULL: none; in the arena, wiped by settings_free() */
    enum { GIVEN_BY_DEFAULT, GIVEN_BY_ENVIRONMENT, GIVEN_BY_FILE } by;
    const char *where; /* the file and line, or the NAME_FILE's path; NULL for the environment */
};

struct settings_origin {
    struct arena *arena;
    const char *config_file;
    struct given given[SETTINGS_MAX]; /* by row */
    const char *warnings[32];
};

/* Fills origin->given from the environment and the configuration file, without defaults. */
enum err settings_gather(struct settings *s, struct why *why) MUST_CHECK;
/* Adds a sentence of the settings' arena to s->warnings; past the ceiling it is dropped. */
void settings_warn(struct settings *s, struct str sentence);

#endif
