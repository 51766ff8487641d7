import { Field } from "./controls";

interface TypedNameProps {
  name: string;
  typed: string;
  onTyped: (typed: string) => void;
  hasFocus?: boolean;
}

/** What cannot be undone is confirmed by typing the name of what it happens to. */
export function TypedName({ name, typed, onTyped, hasFocus = false }: TypedNameProps) {
  return (
    <Field label={`Type ${name} to confirm`}>
      {(field) => (
        <input
          {...field}
          data-autofocus={hasFocus || undefined}
          className="input mono"
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => onTyped(event.target.value)}
        />
      )}
    </Field>
  );
}
