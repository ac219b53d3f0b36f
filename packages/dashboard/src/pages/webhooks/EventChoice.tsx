import { useState } from 'react';
import { Button } from '../../parts/Button.tsx';
import { CheckField } from '../../parts/Field.tsx';
import {
  countChosen,
  EVENT_GROUPS,
  toggleCategory,
  toggleType,
  type Chosen,
  type EventGroup,
} from './choose-events.ts';

interface EventChoiceProps {
  readonly chosen: Chosen;
  readonly onChange: (chosen: Chosen) => void;
}

/** A choice of events: all, whole categories, or single types. */
export function EventChoice({ chosen, onChange }: EventChoiceProps) {
  const isAll = chosen.includes('*');
  return (
    <fieldset className="event-choice">
      <legend>Events</legend>
      <CheckField
        label="All events"
        field="event_types"
        checked={isAll}
        onChange={(isChecked) => onChange(isChecked ? ['*'] : [])}
      />
      {isAll ? null : (
        <ul className="event-groups" aria-label="Categories of events" tabIndex={0}>
          {EVENT_GROUPS.map((group) => (
            <Group key={group.category} group={group} chosen={chosen} onChange={onChange} />
          ))}
        </ul>
      )}
    </fieldset>
  );
}

function Group({ group, chosen, onChange }: EventChoiceProps & { readonly group: EventGroup }) {
  const { category, types } = group;
  const [isOpen, setOpen] = useState(false);
  const count = countChosen(chosen, group);
  const isWhole = chosen.includes(`${category}.*`);
  const amount = isWhole ? 'all' : `${count} of ${types.length}`;
  return (
    <li>
      <div className="event-group">
        <CheckField
          label={`${category}.*`}
          checked={isWhole}
          onChange={() => onChange(toggleCategory(chosen, group))}
        />
        <Button
          look="quiet"
          icon={isOpen ? 'down' : 'chevron'}
          aria-expanded={isOpen}
          aria-label={`${amount} types of ${category}`}
          onClick={() => setOpen(!isOpen)}
        >
          {amount}
        </Button>
      </div>
      {isOpen ? (
        <ul className="event-types">
          {types.map(({ type, meaning }) => (
            <li key={type}>
              <CheckField
                label={type}
                hint={meaning}
                checked={isWhole || chosen.includes(type)}
                onChange={() => onChange(toggleType(chosen, group, type))}
              />
            </li>
          ))}
        </ul>
      ) : null}
    </li>
  );
}
