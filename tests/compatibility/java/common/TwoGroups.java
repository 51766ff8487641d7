import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;

/** Two groups of three members on one topic, at once. No cell of the matrix: see test_two_groups.py. */
final class TwoGroups {
    static final int PARTITIONS = 6, RECORDS = 100;

    static void into(Map<String, Driver.Feature> features) {
        for (String protocol : new String[] {"classic", "consumer"})
            features.put("two-groups-" + protocol, cell -> play(cell, protocol));
    }

    static Map<String, Object> play(Cell cell, String protocol) throws Exception {
        List<Member> everybody = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            String group = cell.topic + (i < 3 ? "-one" : "-two");
            everybody.add(new Member(cell, "group.id", group, "group.protocol", protocol));
        }
        Member[] one = everybody.subList(0, 3).toArray(new Member[0]), two = everybody.subList(3, 6).toArray(new Member[0]);
        // Records come when the groups are settled: a rebalance in the middle may repeat what was not committed.
        Cell.await("two for each", () -> !Groups.failed(one) && !Groups.failed(two) && everybody.stream().allMatch(each -> each.owned == 2));
        write(cell);
        for (Member[] group : new Member[][] {one, two})
            Cell.await("all records", () -> !Groups.failed(group) && Groups.distinct(group) == PARTITIONS * RECORDS);
        for (Member member : everybody) member.close();
        Cell.expectEqual(PARTITIONS * RECORDS, count(one), "records that came to the first group");
        Cell.expectEqual(PARTITIONS * RECORDS, count(two), "records that came to the second group");
        return Collections.emptyMap();
    }

    private static void write(Cell cell) {
        try (KafkaProducer<String, String> producer = cell.producer()) {
            for (int partition = 0; partition < PARTITIONS; partition++) cell.send(producer, partition, "value", RECORDS);
        }
    }

    private static int count(Member... members) {
        int count = 0;
        for (Member member : members) count += member.read.size();
        return count;
    }
}
