#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/report.h"
#include "credentials/access_keys.h"
#include "server/database.h"

struct key_options {
    const char *customer, *name; /* NULL when not given */
    const char *key;             /* to be revoked: an id, or the key itself */
    report_printer *print;       /* how `list` prints them */
};

static enum err ask(struct pg *pg, struct pg_call *call, struct why *why)
{
    enum err e = pg_ask(pg, call, clock_ns() + DATABASE_DEADLINE_NS);
    return e ? why_set(why, e, "the keys cannot be reached (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call->sqlstate)
             : OK;
}

static enum err create(const struct key_options *o, struct pg *pg, const struct digest *hasher, struct why *why)
{
    struct access_key key = access_key_new();
    char hash[DIGEST_HEX_LEN + 1], prefix[ACCESS_KEY_PREFIX_LEN + 1];
    access_key_hash(hasher, str_of(key.text), hash);
    access_key_prefix(&key, prefix);
    struct pg_call call = {
        .ask = &access_key_insert,
        .args = {pg_text(o->customer), pg_text(hash), pg_text(prefix), pg_text(o->name ? o->name : "")}};
    enum err e = ask(pg, &call, why);
    if (!e && call.rows == 0)
        e = why_set(why, ERR_MISSING, "there is no customer %s, or it is deleted", o->customer);
    if (!e) {
        printf("%s\n", key.text);
        fprintf(stderr, "its id is %s; the key is not shown again\n", pg_get(&call, 0, 0).at);
    }
    secret_wipe(&key, sizeof key);
    return e;
}

static enum err revoke(const struct key_options *o, struct pg *pg, const struct digest *hasher, struct why *why)
{
    struct pg_call call = {.ask = &access_key_revoke, .args = {pg_null(), pg_null(), pg_null()}};
    char hash[DIGEST_HEX_LEN + 1];
    if (o->customer)
        call.args[0] = pg_text(o->customer);
    if (o->key && str_is_uuid(str_of(o->key))) {
        call.args[1] = pg_text(o->key);
    } else if (o->key) {
        access_key_hash(hasher, str_of(o->key), hash);
        call.args[2] = pg_text(hash);
    }
    enum err e = ask(pg, &call, why);
    if (!e && o->key && call.rows == 0)
        e = why_set(why, ERR_MISSING, "there is no such key%s, or it is revoked already",
                    o->customer ? " of this customer" : "");
    if (!e)
        printf("%d key%s revoked\n", call.rows, call.rows == 1 ? "" : "s");
    return e;
}

static const char *const columns[] = {"id", "prefix", "name", "created_at", "last_used_at", "revoked_at"};
static const struct report report = {columns, COUNT_OF(columns), -1, "-", "key"};

static enum err list(const struct key_options *o, struct pg *pg, struct why *why)
{
    struct pg_call call = {.ask = &access_keys_list, .args = {pg_text(o->customer)}};
    enum err e = ask(pg, &call, why);
    if (!e)
        o->print(&report, &call);
    return e;
}

/* What is wrong with the order as it was typed; NULL when nothing is. */
static const char *complaint(const char *verb, const struct key_options *o, const char *format)
{
    bool creates = strcmp(verb, "create") == 0, revokes = strcmp(verb, "revoke") == 0;
    if (!creates && !revokes && strcmp(verb, "list") != 0)
        return "say create, revoke or list";
    if (!o->customer && !(revokes && o->key))
        return revokes ? "say which key, or all of --customer ID" : "say whose: --customer ID";
    if (o->customer && !str_is_uuid(str_of(o->customer)))
        return "--customer wants a customer's id, a UUID";
    if (o->key && !revokes)
        return "only revoke takes a key";
    if (o->key && !str_is_uuid(str_of(o->key)) && !access_key_is_one(str_of(o->key)))
        return "what is to be revoked is neither a key nor a key's id";
    if (o->name && (!creates || !access_key_name_is_fine(str_of(o->name))))
        return creates ? "a name has at most 100 bytes, without control characters" : "only create takes --name";
    if (format && (creates || revokes || !o->print))
        return "--format is for list: table, csv or json";
    return NULL;
}

int command_key(int argc, char **argv)
{
    struct option_rule options[] = {
        {"--config", true, NULL}, {"--customer", true, NULL}, {"--name", true, NULL}, {"--format", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 2, &words))
        return 2;
    const char *verb = words ? argv[1] : "", *format = options[3].value;
    struct key_options order = {.customer = options[1].value,
                                .name = options[2].value,
                                .key = words == 2 ? argv[2] : NULL,
                                .print = report_printer_named(format)};
    const char *wrong = complaint(verb, &order, format);
    if (wrong) {
        fprintf(stderr, "reclaim key: %s (reclaim key --help tells more)\n", wrong);
        return 2;
    }

    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    struct digest hasher;
    if (settings_load(options[0].value, &s, &why) || database_access_key_hasher(s, &hasher, &why) ||
        database_open(s, &db, &why) || database_same_key(s, db.pg, &why))
        return command_failed("key", &why);
    enum err e = strcmp(verb, "create") == 0   ? create(&order, db.pg, &hasher, &why)
                 : strcmp(verb, "revoke") == 0 ? revoke(&order, db.pg, &hasher, &why)
                                               : list(&order, db.pg, &why);
    secret_wipe(&hasher, sizeof hasher);
    return e ? command_failed("key", &why) : 0;
}
