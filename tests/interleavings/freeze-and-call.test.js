// Freezing a customer while its calls are set up.

import { after, before } from 'node:test';

import { Stage } from '../service/lib/stage.js';
import { calling, freezeWhileRinging, freezing, justFreezing, newCustomer, noCallLivesOn, ringing } from './lib/freezing.js';
import { race, world } from './lib/race.js';

const stage = new Stage();
let place;
before(async () => {
  place = await world(stage, ['admin', 'switch']);
});
after(() => stage.end());

race('a freeze, and a call that another program sets up in a transaction of its own', () => place, {
  setUp: newCustomer,
  sessions: { caller: calling, admin: freezing },
  promise: noCallLivesOn,
  transcripts: `
    call         created
    commit       commit
    freeze       200 frozen
    hang-up      done

    call         created
    freeze       waits for caller
    commit       commit
    freeze       200 frozen
    hang-up      done

    call         created
    freeze       waits for caller
    hang-up      not before freeze completes
    commit       commit
    freeze       200 frozen
    hang-up      done

    freeze       200 frozen
    call         frozen
    commit       commit
    hang-up      done

    freeze       200 frozen
    call         frozen
    hang-up      done
    commit       commit

    freeze       200 frozen
    hang-up      done
    call         frozen
    commit       commit
  `,
});

race('a freeze that has the customer, and a call that another instance is asked for', () => place, { setUp: newCustomer, ...freezeWhileRinging('switch') });

race('a customer that calls again and again cannot keep its freeze waiting', () => place, {
  setUp: newCustomer,
  sessions: { caller: calling, admin: justFreezing, switch: ringing },
  promise: noCallLivesOn,
  chosen: 'the orders in which a second call comes while the freeze waits for the first, and the one without a freeze before it',
  transcripts: `
    call         created
    freeze       waits for caller
    ring         waits for admin
    commit       commit
    freeze       200 frozen
    ring         403 DELETION_SCHEDULED

    call         created
    ring         201 dialing
    freeze       waits for caller
    commit       commit
    freeze       200 frozen
  `,
});
