// One colour per member, kept while the member stays: who owns what is seen without reading.
import type { GroupMember } from "../../api/types";

export const COLOR_COUNT = 8;

export type MemberColors = ReadonlyMap<string, number>;

/** By the order of names, so that a page and its reload agree. */
export function colorsOf(members: readonly GroupMember[]): MemberColors {
  const ids = members.map(({ id }) => id).sort();
  return new Map(ids.map((id, index) => [id, index % COLOR_COUNT]));
}
