// React: schedules the deletion of the account, shows its date, and takes it back.
import { useEffect, useState } from 'react';
import { reclaim } from './reclaim.js'; // export const reclaim = createReclaim({ supabase });

export function DeleteAccount() {
  const [account, setAccount] = useState(null);
  const [password, setPassword] = useState('');
  const [problem, setProblem] = useState('');

  useEffect(() => {
    const leaving = new AbortController();
    reclaim.account({ signal: leaving.signal }).then(setAccount, (error) => leaving.signal.aborted || setProblem(error.message));
    return () => leaving.abort();
  }, []);

  const run = (action) => async (event) => {
    event.preventDefault();
    setProblem('');
    await action().then(setAccount, (error) => setProblem(error.message));
  };

  const date = account?.deletion_effective_at && new Date(account.deletion_effective_at).toLocaleDateString();
  return (
    <form onSubmit={run(() => (date ? reclaim.recover() : reclaim.unregister({ password })))}>
      {problem && <p role="alert">{problem}</p>}
      {date ? <p>Your account will be deleted on {date}.</p> : (
        <label>Password <input type="password" autoComplete="current-password" value={password} onChange={(event) => setPassword(event.target.value)} /></label>
      )}
      <button disabled={!account}>{date ? 'Keep my account' : 'Delete my account'}</button>
    </form>
  );
}
