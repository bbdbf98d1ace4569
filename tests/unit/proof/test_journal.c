/* The journal: what is appended is there after a crash, a damaged line is named, and the lines of others are refused. */
#include "proof/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/unit.h"
#include "proof/digest_set.h"
#include "proof/read_journal.h"

#define HERE "0123456789abcdef0123456789abcdef"
#define SOMEONE "a0000000-0000-4000-8000-000000000001"

static struct proof_keys keys, others;
static char folder[64];
static int file_syncs, folder_syncs, failing_syncs;

/* Instead of those of the C library. */
int fdatasync(int fd)
{
    file_syncs++;
    if (failing_syncs && failing_syncs--) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}
int fsync(int fd)
{
    folder_syncs++;
    return (int)syscall(SYS_fsync, fd);
}

static void assert_synced(int files, int folders)
{
    assert_int_equal(file_syncs, files);
    assert_int_equal(folder_syncs, folders);
    file_syncs = folder_syncs = 0;
}

static int make_folder(void **state UNUSED)
{
    assert_int_equal(proof_keys_derive(STR("a master key that is long enough"), &keys), OK);
    assert_int_equal(proof_keys_derive(STR("another master key, long enough"), &others), OK);
    memcpy(folder, "/tmp/reclaim-journal-XXXXXX", sizeof "/tmp/reclaim-journal-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st UNUSED, int type UNUSED, struct FTW *at UNUSED)
{
    return remove(path);
}

static int remove_folder(void **state UNUSED)
{
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static struct journal_chain chain_of(const struct proof_keys *by, const char *installation)
{
    return (struct journal_chain){
        .key = &by->generations[0], .installation = installation, .epoch = 1, .clock_s = 1700000000};
}

static void append(struct journal_chain *chain, int lines)
{
    struct journal *j;
    struct why why;
    assert_int_equal(journal_open(folder, &j, &why), OK);
    assert_int_equal(journal_lock(j, &why), OK);
    for (int i = 0; i < lines; i++) {
        AUTO(buf) struct buf line = buf_new(JOURNAL_LINE_MAX);
        const struct journal_erasure erasure = {.customer_id = STR(SOMEONE),
                                                .users = STR("[\"" SOMEONE "\"]"),
                                                .requested_at = STR("2026-01-01T00:00:00Z")};
        if (i % 2)
            journal_write_head(chain, i, "head", &line);
        else
            journal_write_erasure(chain, &erasure, &line);
        buf_addz(&line, "\n");
        assert_int_equal(journal_append(j, buf_str(&line), &why), OK);
    }
    journal_unlock(j);
    journal_close(j);
}

static enum err read_all(struct journal_reading *r, struct why *why)
{
    r->keys = &keys;
    return journal_read(folder, r, why);
}

/* The first file, as a text that ends with a NUL; the caller free()s it. */
static char *slurp(void)
{
    char name[128], *text = calloc(1, 1 << 20);
    snprintf(name, sizeof name, "%s/00000001.jsonl", folder);
    FILE *file = fopen(name, "re");
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void spill(const char *text)
{
    char name[128];
    snprintf(name, sizeof name, "%s/00000001.jsonl", folder);
    FILE *file = fopen(name, "we");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void what_was_appended_is_read_in_order(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    struct journal_reading r = {.installation = HERE};
    struct why why;
    append(&chain, 3);
    append(&chain, 2);
    assert_int_equal(read_all(&r, &why), OK);
    assert_int_equal(r.lines, 5);
    assert_int_equal(r.of_kind[JOURNAL_ERASURE], 3);
    assert_int_equal(r.of_kind[JOURNAL_HEAD], 2);
    assert_int_equal(r.generation, 1);
}

static void a_line_without_its_end_is_cut_off(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    struct journal_reading r = {.installation = HERE};
    struct why why;
    append(&chain, 2);
    char *text = slurp();
    size_t room = strlen(text) + 32;
    char *torn = malloc(room);
    snprintf(torn, room, "%s{\"v\":1,\"ki", text);
    spill(torn);
    free(torn);
    free(text);
    assert_int_equal(read_all(&r, &why), OK);
    assert_int_equal(r.lines, 2);
    append(&chain, 1);
    assert_int_equal(read_all(&r, &why), OK);
    assert_int_equal(r.lines, 3);
}

static void refused_after(void (*damage)(char *text), const char *words, enum err with)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    struct journal_reading r = {.installation = HERE};
    struct why why = {""};
    append(&chain, 4);
    char *text = slurp();
    damage(text);
    spill(text);
    free(text);
    assert_int_equal(read_all(&r, &why), with);
    assert_non_null(strstr(why.text, words));
}

static void change_the_second(char *text)
{
    *strstr(strchr(text, '\n'), "\"epoch\":1") += 1; /* the quote becomes another character */
}
static void change_a_number(char *text)
{
    strstr(strchr(text, '\n'), "\"epoch\":1")[8] = '2';
}
static void change_the_last(char *text)
{
    char *last = text;
    for (char *at = strstr(text, "\"at\":"); at; at = strstr(at + 1, "\"at\":"))
        last = at;
    last[5] = '2';
}
static void remove_the_second(char *text)
{
    char *from = strchr(text, '\n') + 1, *to = strchr(from, '\n') + 1;
    memmove(from, to, strlen(to) + 1);
}
static void of_a_newer_release(char *text)
{
    strstr(text, "\"v\":1")[4] = '9';
}

static void a_line_that_is_no_line_is_named(void **state UNUSED)
{
    refused_after(change_the_second, "00000001.jsonl, line 2", ERR_INPUT);
}
static void a_changed_line_is_named(void **state UNUSED)
{
    refused_after(change_a_number, "00000001.jsonl, line 2: it was changed", ERR_INPUT);
}
static void the_last_line_is_checked_too(void **state UNUSED)
{
    refused_after(change_the_last, "line 4: it was changed", ERR_INPUT);
}
static void a_removed_line_is_missed(void **state UNUSED)
{
    refused_after(remove_the_second, "line 2: the line before it is missing", ERR_INPUT);
}
static void a_newer_release_is_refused(void **state UNUSED)
{
    refused_after(of_a_newer_release, "newer release", ERR_FULL);
}

static void another_installation_is_refused(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, "fedcba9876543210fedcba9876543210");
    struct journal_reading r = {.installation = HERE};
    struct why why = {""};
    append(&chain, 2);
    assert_int_equal(read_all(&r, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "another installation"));
}

static void another_key_is_refused(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&others, HERE);
    struct journal_reading r = {.installation = HERE};
    struct why why = {""};
    append(&chain, 2);
    assert_int_equal(read_all(&r, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "another RECLAIM_SECRET_KEY"));
}

/* Two processes share a folder: each sees what the other has appended. */
static void the_tail_is_that_of_the_file(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    struct journal *j;
    struct digest tail;
    struct why why;
    assert_int_equal(journal_open(folder, &j, &why), OK);
    assert_int_equal(journal_lock(j, &why), OK);
    assert_false(journal_tail(j, &tail));
    journal_unlock(j);
    append(&chain, 3);
    assert_int_equal(journal_lock(j, &why), OK);
    assert_true(journal_tail(j, &tail));
    assert_true(digest_eq(&tail, &chain.last));
    journal_unlock(j);
    journal_close(j);
}

static void files_older_than_the_backups_are_removed_but_the_last(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    struct journal *j;
    struct why why;
    int64_t removed;
    append(&chain, 1); /* of long ago: a new file begins */
    append(&chain, 1);
    assert_int_equal(journal_open(folder, &j, &why), OK);
    assert_int_equal(journal_lock(j, &why), OK);
    assert_int_equal(journal_prune(j, 0, &removed), OK);
    assert_int_equal(removed, 0);
    assert_int_equal(journal_prune(j, INT64_MAX, &removed), OK);
    assert_int_equal(removed, 1);
    assert_int_equal(journal_prune(j, INT64_MAX, &removed), OK);
    assert_int_equal(removed, 0);
    journal_unlock(j);
    journal_close(j);
    struct journal_reading r = {.installation = HERE};
    assert_int_equal(read_all(&r, &why), OK);
    assert_int_equal(r.lines, 1);
}

/* Of an export, and of a folder whose first files were removed. */
static void a_removed_line_is_missed_behind_removed_files(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    char from[128], to[128];
    struct why why;
    append(&chain, 5);
    char *text = slurp(), *second = strchr(text, '\n') + 1;
    spill(second); /* as if the first file had ended with the first line */
    snprintf(from, sizeof from, "%s/00000001.jsonl", folder);
    snprintf(to, sizeof to, "%s/00000002.jsonl", folder);
    struct journal_reading r = {.keys = &keys, .installation = HERE};
    assert_int_equal(journal_read(from, &r, &why), OK);
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(read_all(&r, &why), OK);
    assert_int_equal(r.lines, 4);
    remove_the_second(second);
    spill(second);
    assert_int_equal(journal_read(from, &r, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "line 2: the line before it is missing"));
    assert_int_equal(rename(from, to), 0);
    assert_int_equal(read_all(&r, &why), ERR_INPUT);
    free(text);
}

/* kill -9 between write and fdatasync leaves lines that the next process reads from memory. */
static void lines_that_were_found_are_synced_once(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE);
    struct journal *j;
    struct why why;
    append(&chain, 2);
    assert_int_equal(journal_open(folder, &j, &why), OK);
    assert_int_equal(journal_lock(j, &why), OK);
    file_syncs = folder_syncs = 0;
    assert_int_equal(journal_sync(j, &why), OK);
    assert_synced(1, 1);
    assert_int_equal(journal_sync(j, &why), OK);
    assert_synced(0, 0);
    journal_unlock(j);
    append(&chain, 2); /* by another process */
    file_syncs = folder_syncs = 0;
    assert_int_equal(journal_lock(j, &why), OK);
    assert_int_equal(journal_sync(j, &why), OK);
    assert_synced(1, 1);
    journal_unlock(j);
    assert_int_equal(journal_lock(j, &why), OK);
    assert_int_equal(journal_sync(j, &why), OK);
    assert_synced(0, 0);
    journal_unlock(j);
    journal_close(j);
}

static void lines_that_were_found_are_synced_before_the_next_file_begins(void **state UNUSED)
{
    struct journal_chain chain = chain_of(&keys, HERE); /* of long ago: each line begins a file */
    append(&chain, 1);
    file_syncs = folder_syncs = 0;
    append(&chain, 1);
    assert_synced(2, 2);
}

static void the_entry_of_a_file_is_synced_with_the_first_line_that_stays(void **state UNUSED)
{
    struct journal *j;
    struct why why;
    assert_int_equal(journal_open(folder, &j, &why), OK);
    assert_int_equal(journal_lock(j, &why), OK);
    file_syncs = folder_syncs = 0;
    failing_syncs = 1;
    assert_int_equal(journal_append(j, STR("one\n"), &why), ERR_SYSTEM);
    assert_synced(1, 0);
    assert_int_equal(journal_append(j, STR("two\n"), &why), OK);
    assert_synced(1, 1);
    assert_int_equal(journal_append(j, STR("three\n"), &why), OK);
    assert_synced(1, 0);
    journal_unlock(j);
    journal_close(j);
    char *text = slurp();
    assert_string_equal(text, "two\nthree\n");
    free(text);
}

static void the_entries_of_new_folders_are_synced(void **state UNUSED)
{
    char deeper[128];
    struct why why;
    snprintf(deeper, sizeof deeper, "%s/two/folders", folder);
    for (int made = 2; made >= 0; made -= 2) {
        struct journal *j;
        file_syncs = folder_syncs = 0;
        assert_int_equal(journal_open(deeper, &j, &why), OK);
        assert_synced(0, made);
        journal_close(j);
    }
}

static void no_file_is_removed_where_none_can_be_listed(void **state UNUSED)
{
    struct rlimit before, none;
    struct journal *j;
    struct why why;
    int64_t removed = 1;
    assert_int_equal(journal_open(folder, &j, &why), OK);
    assert_int_equal(journal_lock(j, &why), OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum err e = journal_prune(j, INT64_MAX, &removed);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(e, ERR_SYSTEM);
    assert_int_equal(removed, 0);
    journal_unlock(j);
    journal_close(j);
}

/* Adds lines to a text: heads, or who was erased. */
static void write_lines(struct journal_chain *chain, int lines, struct buf *into)
{
    for (int i = 0; i < lines; i++) {
        AUTO(buf) struct buf line = buf_new(JOURNAL_LINE_MAX);
        journal_write_head(chain, ++chain->clock_s, "head", &line);
        buf_add(into, buf_str(&line));
        buf_addz(into, "\n");
    }
}

static const char *line_of(const char *text, int number)
{
    while (number-- > 1)
        text = strchr(text, '\n') + 1;
    return text;
}

/* As a database has them: 3 lines, a backup, 3 lines that a restored database wrote, 5 that were lost, the restore and 2 more. */
static char *restored_journal(void)
{
    struct journal_chain lost = chain_of(&keys, HERE), restored;
    AUTO(buf) struct buf text = buf_new(1 << 20), branch = buf_new(1 << 20), line = buf_new(JOURNAL_LINE_MAX);
    write_lines(&lost, 3, &text);
    restored = lost;
    write_lines(&lost, 5, &branch);
    restored.clock_s = lost.clock_s;
    write_lines(&restored, 3, &text);
    buf_add(&text, buf_str(&branch));
    lost.clock_s = restored.clock_s;
    journal_write_restore(&lost, &restored.last, false, 5, &line);
    buf_add(&text, buf_str(&line));
    buf_addz(&text, "\n");
    write_lines(&lost, 2, &text);
    return strndup(buf_str(&text).at, buf_str(&text).len);
}

static enum err read_text(const char *text)
{
    struct journal_reading r = {.keys = &keys, .installation = HERE};
    char name[128];
    struct why why;
    snprintf(name, sizeof name, "%s/00000001.jsonl", folder);
    spill(text);
    enum err e = journal_read(folder, &r, &why), of_export = journal_read(name, &r, &why);
    assert_int_equal(e, of_export);
    return e;
}

/* Lines `from` to `to` are cut out of what is left when the first `removed` are gone. */
static enum err read_cut(int removed, int from, int to)
{
    char *text = restored_journal();
    char *at = text + (line_of(text, from) - text);
    const char *end = line_of(text, to + 1);
    memmove(at, end, strlen(end) + 1);
    enum err e = read_text(line_of(text, removed + 1));
    free(text);
    return e;
}

static void lines_may_go_with_their_age_around_a_restore(void **state UNUSED)
{
    char *text = restored_journal();
    for (int removed = 0; removed < 14; removed++)
        assert_int_equal(read_text(line_of(text, removed + 1)), OK);
    free(text);
}

/* The lines of a journal that another instance wrote: those that were lost first. */
static void files_may_go_with_their_age_around_a_restore(void **state UNUSED)
{
    char *text = restored_journal(), *other = calloc(1, strlen(text) + 1);
    const char *fork = line_of(text, 4), *lost = line_of(text, 7), *merged = line_of(text, 12);
    snprintf(other, strlen(text) + 1, "%.*s%.*s%.*s%s", (int)(fork - text), text, (int)(merged - lost), lost,
             (int)(lost - fork), fork, merged);
    for (int removed = 0; removed < 14; removed++)
        assert_int_equal(read_text(line_of(other, removed + 1)), OK);
    free(other);
    free(text);
}

static void a_line_that_was_cut_out_is_missed_in_spite_of_a_restore(void **state UNUSED)
{
    for (int line = 2; line < 14; line++)
        assert_int_equal(read_cut(0, line, line), ERR_INPUT);
    for (int line = 3; line < 14; line++)
        if (line != 4 && line != 7) /* the first ones after the backup: of these nothing says when they were written */
            assert_int_equal(read_cut(1, line, line), ERR_INPUT);
    assert_int_equal(read_cut(1, 8, 10), ERR_INPUT);
    assert_int_equal(read_cut(4, 8, 10), ERR_INPUT);
    assert_int_equal(read_cut(4, 10, 11), ERR_INPUT);
}

static void a_set_keeps_what_was_added(void **state UNUSED)
{
    struct digest_set set = {0};
    for (int i = 0; i < 5000; i++) {
        struct digest d = digest_sha256((struct str){(const char *)&i, sizeof i});
        assert_false(digest_set_has(&set, &d));
        assert_int_equal(digest_set_add(&set, &d), OK);
        assert_int_equal(digest_set_add(&set, &d), OK);
        assert_true(digest_set_has(&set, &d));
    }
    assert_int_equal(set.count, 5000);
    digest_set_cleanup(&set);
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(what_was_appended_is_read_in_order),
        IN_A_FOLDER(a_line_without_its_end_is_cut_off),
        IN_A_FOLDER(a_line_that_is_no_line_is_named),
        IN_A_FOLDER(a_changed_line_is_named),
        IN_A_FOLDER(the_last_line_is_checked_too),
        IN_A_FOLDER(a_removed_line_is_missed),
        IN_A_FOLDER(a_newer_release_is_refused),
        IN_A_FOLDER(another_installation_is_refused),
        IN_A_FOLDER(another_key_is_refused),
        IN_A_FOLDER(the_tail_is_that_of_the_file),
        IN_A_FOLDER(files_older_than_the_backups_are_removed_but_the_last),
        IN_A_FOLDER(a_removed_line_is_missed_behind_removed_files),
        IN_A_FOLDER(lines_that_were_found_are_synced_once),
        IN_A_FOLDER(lines_that_were_found_are_synced_before_the_next_file_begins),
        IN_A_FOLDER(the_entry_of_a_file_is_synced_with_the_first_line_that_stays),
        IN_A_FOLDER(the_entries_of_new_folders_are_synced),
        IN_A_FOLDER(no_file_is_removed_where_none_can_be_listed),
        IN_A_FOLDER(lines_may_go_with_their_age_around_a_restore),
        IN_A_FOLDER(files_may_go_with_their_age_around_a_restore),
        IN_A_FOLDER(a_line_that_was_cut_out_is_missed_in_spite_of_a_restore),
        cmocka_unit_test(a_set_keeps_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
