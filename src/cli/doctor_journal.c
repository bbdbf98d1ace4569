#include "cli/doctor_journal.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "erasure/journal_keeper.h"
#include "erasure/replay.h"
#include "proof/read_journal.h"

static void check_restored(struct pg *pg, finding_handler *each, void *context)
{
    bool needed;
    if (replay_is_needed(pg, clock_ns() + DATABASE_DEADLINE_NS, &needed))
        each(context, &(struct finding){SEVERITY_FAILURE, "the journal cannot be checked: run reclaim migrate"});
    else if (needed)
        each(context, &(struct finding){
                          SEVERITY_FAILURE,
                          "the database was restored from a backup, and customers erased since then are in it again: "
                          "nothing is mailed, charged or deleted until reclaim replay-erasures has erased them"});
}

/* Only what this machine's journal says for itself; the servers compare it with the database every minute. */
static void check_folder(struct pg *pg, const struct settings *s, const struct proof_keys *keys, finding_handler *each,
                         void *context)
{
    char sentence[1280], installation[INSTALLATION_ID_LEN + 1];
    struct why why = {""};
    struct journal_reading r = {.keys = keys, .installation = installation};
    if (access(s->journal, F_OK) != 0) {
        (void)snprintf(
            sentence, sizeof sentence,
            "no journal at %s: a server makes one and fills it from the database; if there should be one, mount "
            "it first (RECLAIM_JOURNAL)",
            s->journal);
        each(context, &(struct finding){SEVERITY_OK, sentence});
        return;
    }
    enum err e = journal_installation_name(pg, keys, clock_ns() + DATABASE_DEADLINE_NS, installation);
    if (!e)
        e = journal_read(s->journal, &r, &why);
    if (e)
        (void)snprintf(sentence, sizeof sentence, "%s", *why.text ? why.text : err_name(e));
    else if (access(s->journal, W_OK) != 0)
        (void)snprintf(sentence, sizeof sentence, "the journal at %s cannot be written by this user", s->journal);
    else
        (void)snprintf(sentence, sizeof sentence, "journal at %s: %lld lines, %lld of them erasures", s->journal,
                       (long long)r.lines, (long long)r.of_kind[JOURNAL_ERASURE]);
    bool writable = access(s->journal, W_OK) == 0;
    each(context, &(struct finding){e ? SEVERITY_FAILURE : writable ? SEVERITY_OK : SEVERITY_WARNING, sentence});
}

void doctor_check_journal(struct pg *pg, const struct settings *s, finding_handler *each, void *context)
{
    static struct proof_keys keys; /* too large for the stack of a small machine */
    char master[SECRET_KEY_MAX + 1];
    struct why why;
    check_restored(pg, each, context);
    enum err e = settings_secret_key(s, false, master, &why);
    if (!e)
        e = proof_keys_derive(str_of(master), &keys);
    secret_wipe(master, sizeof master);
    if (e)
        return; /* the key's own check has said so */
    check_folder(pg, s, &keys, each, context);
    proof_keys_wipe(&keys);
}
