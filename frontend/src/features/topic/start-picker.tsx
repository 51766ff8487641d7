import { type SyntheticEvent, useState } from "react";
import { Button } from "../../components/controls";
import { SegmentedControl } from "../../components/segmented";
import type { From, TailChoice } from "./tail-choice";

const OPTIONS: { value: From; label: string; title: string }[] = [
  { value: "recent", label: "Recent", title: "The last 50 of each partition, then live" },
  { value: "latest", label: "Now", title: "Only what is written from now on" },
  { value: "earliest", label: "Beginning", title: "From the oldest record that is still there" },
  { value: "offset", label: "Offset", title: "From one record of one partition" },
];

interface PickerProps {
  choice: TailChoice;
  onChange: (choice: TailChoice) => void;
  partitionCount: number;
}

export function StartPicker({ choice, onChange, partitionCount }: PickerProps) {
  const [isAsking, setIsAsking] = useState(false);
  const showsOffset = isAsking || choice.from === "offset";
  const pick = (from: From): void => {
    setIsAsking(from === "offset");
    if (from !== "offset") onChange({ ...choice, from, offset: "" });
  };
  return (
    <div className="start-picker">
      <SegmentedControl
        label="Start from"
        options={OPTIONS}
        value={showsOffset ? "offset" : choice.from}
        onChange={pick}
      />
      {showsOffset ? (
        <OffsetForm
          key={`${choice.partition}-${choice.offset}`}
          choice={choice}
          partitionCount={partitionCount}
          onChange={(next) => {
            setIsAsking(false);
            onChange(next);
          }}
        />
      ) : (
        <PartitionSelect
          value={choice.partition}
          count={partitionCount}
          onChange={(partition) => onChange({ ...choice, partition })}
        />
      )}
    </div>
  );
}

interface PartitionSelectProps {
  value: number | null;
  count: number;
  onChange: (partition: number | null) => void;
}

function PartitionSelect({ value, count, onChange }: PartitionSelectProps) {
  if (count < 2 && value === null) return null;
  return (
    <select
      className="select partition-select"
      aria-label="Partition"
      value={value ?? ""}
      onChange={(event) => onChange(event.target.value === "" ? null : Number(event.target.value))}
    >
      <option value="">All partitions</option>
      {Array.from({ length: Math.max(count, (value ?? -1) + 1) }, (_, partition) => (
        <option key={partition} value={partition}>
          Partition {partition}
        </option>
      ))}
    </select>
  );
}

function OffsetForm({ choice, onChange, partitionCount }: PickerProps) {
  const [partition, setPartition] = useState(String(choice.partition ?? 0));
  const [offset, setOffset] = useState(choice.offset || "0");
  const submit = (event: SyntheticEvent): void => {
    event.preventDefault();
    if (/^\d+$/.test(offset)) onChange({ from: "offset", partition: Number(partition), offset });
  };
  return (
    <form className="offset-form" onSubmit={submit}>
      <label>
        Partition
        <input
          className="input"
          type="number"
          min={0}
          max={Math.max(0, partitionCount - 1)}
          value={partition}
          onChange={(event) => setPartition(event.target.value)}
        />
      </label>
      <label>
        Offset
        <input
          className="input offset-input"
          inputMode="numeric"
          pattern="\d+"
          value={offset}
          onChange={(event) => setOffset(event.target.value.trim())}
        />
      </label>
      <Button type="submit">Go</Button>
    </form>
  );
}
