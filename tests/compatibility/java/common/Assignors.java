import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** Who gets which partition is the clients' own affair: the broker carries what their assignors say, unread and whole. */
final class Assignors {
    static void into(Map<String, Driver.Feature> features) {
        features.put("assignor-sticky", Assignors::sticky);
        features.put("assignor-custom", Assignors::custom);
    }

    /** Those that stay keep what they had, when one comes and when one goes; range and round-robin move something. */
    static Map<String, Object> sticky(Cell cell) throws Exception {
        String[] pairs = {"partition.assignment.strategy", "org.apache.kafka.clients.consumer.StickyAssignor"};
        try (Member leaving = new Member(cell, pairs); Member staying = new Member(cell, pairs)) {
            settle(3, leaving, staying);
            Set<Integer> leavingHad = leaving.partitions, stayingHad = staying.partitions;
            try (Member joining = new Member(cell, pairs)) {
                settle(2, leaving, staying, joining);
                expectWithin(leaving.partitions, leavingHad);
                expectWithin(staying.partitions, stayingHad);
                Cell.expect(staying.revoked.get() >= 3, "an eager member gives up everything: " + staying.revoked.get());
                Set<Integer> stayingKept = staying.partitions, joiningHad = joining.partitions;
                leaving.close();
                settle(3, staying, joining);
                expectWithin(stayingKept, staying.partitions);
                expectWithin(joiningHad, joining.partitions);
            }
        }
        return Collections.emptyMap();
    }

    /** Each member gets what it wished for in its user data, uneven as no assignor of Kafka's would do it. */
    static Map<String, Object> custom(Cell cell) throws Exception {
        try (Member two = wishing(cell, "5,0"); Member three = wishing(cell, "1,3,4"); Member one = wishing(cell, "2")) {
            Cell.await("to each what it wished for", () -> !Groups.failed(two, three, one)
                    && two.partitions.equals(indexes(0, 5)) && three.partitions.equals(indexes(1, 3, 4)) && one.partitions.equals(indexes(2)));
            Cell.await("all records", () -> !Groups.failed(two, three, one) && Groups.distinct(two, three, one) == 60);
        }
        Cell.expectEqual(new TreeSet<>(Arrays.asList("granted 5,0", "granted 1,3,4", "granted 2")), Wish.ANSWERS, "what the leader told them");
        return Collections.emptyMap();
    }

    private static Member wishing(Cell cell, String wish) {
        return new Member(cell, "partition.assignment.strategy", "WishAssignor", Wish.SETTING, wish);
    }

    private static void settle(int each, Member... members) throws Exception {
        Cell.await(each + " for each", () -> {
            Groups.failed(members);
            Set<Integer> owned = new TreeSet<>();
            for (Member member : members) {
                if (member.partitions.size() != each) return false;
                owned.addAll(member.partitions);
            }
            return owned.size() == 6;
        });
    }

    private static void expectWithin(Set<Integer> part, Set<Integer> whole) {
        Cell.expect(whole.containsAll(part), part + " is not within " + whole + ": something was moved without need");
    }

    private static Set<Integer> indexes(Integer... indexes) {
        return new TreeSet<>(Arrays.asList(indexes));
    }
}
