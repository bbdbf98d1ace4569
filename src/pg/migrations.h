/* The schema as the program's embedded files describe it: numbered steps that make the tables, sql/tables/NNNN_name.up.sql
 * and NNNN_name.down.sql, and one set of functions and triggers, sql/functions/AREA/name.sql and sql/triggers.sql. */
#ifndef PG_MIGRATIONS_H
#define PG_MIGRATIONS_H

#include "base/digest.h"
#include "base/embedded.h"

struct migration {
    int version; /* 1, 2, 3… without gaps */
    char name[64];
    struct str up, down; /* a NUL follows each */
};

#define MIGRATIONS_MAX 256
#define MIGRATIONS_FOLDER "sql/tables/"

/* The number grows with every change of the set, so that an older program never puts its functions in place of newer
 * ones. It is in sql/functions/set, which tools/sql-set writes. */
struct function_set {
    int number;
    char checksum[DIGEST_HEX_LEN + 1];       /* SHA-256 over the files' names and texts */
    size_t count;                            /* of functions */
    const struct embedded *const *functions; /* one function each, called as its file is; sorted by name */
    const struct embedded *triggers;         /* NULL: none */
};

#define FUNCTIONS_MAX 512
#define FUNCTIONS_FOLDER "sql/functions/"

struct schema {
    const struct migration *steps;
    size_t count;
    const struct function_set *set; /* NULL: none */
};

/* The schema embedded in the program. */
enum err migrations_embedded(const struct schema **ret, struct why *why) MUST_CHECK;
/* The steps among the files, which are sorted by name; `into` holds MIGRATIONS_MAX. ERR_INPUT when one is missing. */
enum err migrations_read(const struct embedded *files, size_t file_count, struct migration *into, size_t *ret_count,
                         struct why *why) MUST_CHECK;
/* The set among the files; `into` holds FUNCTIONS_MAX and must live as long as *ret. ERR_INPUT when its number is missing,
 * or two files define functions of the same name. */
enum err functions_read(const struct embedded *files, size_t file_count, const struct embedded **into,
                        struct function_set *ret, struct why *why) MUST_CHECK;
/* "customer_turn" of "sql/functions/customers/customer_turn.sql". */
struct str function_name(const struct embedded *file);

#endif
