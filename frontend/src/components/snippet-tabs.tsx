import { useState } from "react";
import { CodeBlock } from "./controls";
import { SegmentedControl } from "./segmented";
import type { Snippet } from "./snippets";

export function SnippetTabs({ snippets }: { snippets: Snippet[] }) {
  const [chosenId, setChosenId] = useState(snippets[0]?.id ?? "");
  const chosen = snippets.find((snippet) => snippet.id === chosenId) ?? snippets[0];
  if (!chosen) return null;
  return (
    <div className="snippet-tabs">
      <SegmentedControl
        label="Client"
        options={snippets.map(({ id, label }) => ({ value: id, label }))}
        value={chosen.id}
        onChange={setChosenId}
      />
      <CodeBlock code={chosen.code} label={chosen.label} />
    </div>
  );
}
